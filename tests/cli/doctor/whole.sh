# Files that break the rules of their format while every tensor is whole: the cause is named, the
# tensors are saved, and nobody is told to download the file again. A model with NaN has a warning.
$PYTHON -c '
import json, math, struct
from samples import f32, write_safetensors

def header(name, text, data=f32(1, 2)):
    text += b" " * (-len(text) % 8)
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + data)

def entry(begin, end):
    return b"{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%d,%d]}" % (
        (end - begin) // 4, begin, end)

both = b"\"a\":%s,\"b\":%s}" % (entry(0, 4), entry(4, 8))
header("zeros.safetensors", b"{" + both, f32(1, 2) + bytes(512))
header("junk.safetensors", b"{" + both, f32(1, 2) + b"notes")
header("nul.safetensors", b"{" + both + bytes(16))
header("mark.safetensors", b"\xef\xbb\xbf{" + both)
header("gap.safetensors", b"{\"a\":%s,\"b\":%s}" % (entry(0, 4), entry(8, 12)), f32(1, 9, 2))
header("overlap.safetensors", b"{\"a\":%s,\"b\":%s}" % (entry(0, 8), entry(4, 8)))
header("twice.safetensors", b"{\"a\":%s,\"a\":%s}" % (entry(0, 4), entry(4, 8)))
header("metadata.safetensors",
       b"{\"__metadata__\":{\"n\":3,\"o\":null,\"l\":[1,{\"x\":2}],\"n\":4}," + both)
header("list.safetensors", b"{\"__metadata__\":[1],\"__metadata__\":{\"a\":\"b\"}," + both)
header("cut.safetensors", b"{\"__metadata__\":{\"n\":3}," + both, f32(1, 2)[:6])
write_safetensors("nan.safetensors", {"w": ("F32", [3], f32(math.nan, 1, -math.inf)),
                                      "h": ("BF16", [2], b"\xc0\x7f\x80\x3f")})

def text(s):
    return struct.pack("<Q", len(s)) + s.encode()

def gguf(name, entries, align=32, offset=0):
    infos = text("w") + struct.pack("<IQIQ", 1, 2, 0, offset)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(entries)) + b"".join(entries) + infos
    head += bytes(-len(head) % align + offset)
    open(name, "wb").write(head + f32(1, 2))

key = text("general.alignment")
arch = text("general.architecture") + struct.pack("<I", 8) + text("t")
gguf("u64.gguf", [arch, key + struct.pack("<IQ", 10, 64)], 64)
gguf("i32.gguf", [arch, key + struct.pack("<Ii", 5, 16)], 16)
gguf("24.gguf", [arch, key + struct.pack("<II", 4, 24)], 24)
gguf("offset.gguf", [arch], 32, 4)
gguf("keys.gguf", [arch, text("k") + struct.pack("<IB", 0, 1), text("k") + struct.pack("<IB", 0, 2)])
gguf("bool.gguf", [arch, text("k") + struct.pack("<IB", 7, 2)])'
for format in zt npz; do
    $HEFT convert -q two.safetensors padded.$format 2> none
    head -c 100 /dev/zero >> padded.$format
done
$HEFT convert --drop ids two.safetensors padded.weights
head -c 100 /dev/zero >> padded.weights
for file in zeros junk nul mark gap overlap twice metadata list cut; do
    echo "-- $file.safetensors"
    $HEFT doctor -fo out.safetensors $file.safetensors 2>&1
    $HEFT show out.safetensors a 2>&1
    $HEFT info out.safetensors | grep -A9 -e '^Metadata' | grep -B9 -e '^Checksums' | grep ' = '
    $HEFT convert $file.safetensors none.npz 2> refusal || sed 's/^heft: /refused: /' refusal
done
for file in u64.gguf i32.gguf 24.gguf offset.gguf keys.gguf bool.gguf padded.zt padded.npz \
        padded.weights; do
    echo "-- $file"
    $HEFT doctor -fo out.gguf $file 2>&1
    $HEFT verify out.gguf 2>&1 | sed 's/, structure.*//'
    $HEFT ls --raw out.gguf
done
echo "-- nan.safetensors"
$HEFT doctor nan.safetensors 2>&1
echo "exit $?"
$HEFT doctor --json nan.safetensors | grep '"kind"'
