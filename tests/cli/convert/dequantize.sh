# What quantised tensors represent; tests/py/check_dequantize.py judges the numbers of each scheme.
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import os, random, struct, subprocess
import gen_gguf, ggml_blocks
raw = ggml_blocks.draw("nvfp4", 256, random.Random(1))
scale, norm = 0.75, struct.pack("<2f", 1, 2)
tensors = [("l.weight", "nvfp4", (2, 128), raw), ("l.scale", "f32", (1, ), struct.pack("<f", scale)),
           ("norm", "f32", (2, ), norm)]
open("scaled.gguf", "wb").write(gen_gguf.File(tensors).bytes())
heft = os.environ["HEFT"]
subprocess.run([heft, "convert", "--dequantize=f32", "scaled.gguf", "decoded.safetensors"], check=True)
want = b"".join(struct.pack("<f", x * scale) for x in ggml_blocks.decode("nvfp4", raw))
print(subprocess.run([heft, "cat", "decoded.safetensors", "l.weight"], capture_output=True).stdout == want)
P
$PYTHON - <<'P'
from samples import write_safetensors
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors("rows.safetensors", {"l.weight": zeros("F8_E4M3", 64, 8, 8),
                                       "l.weight_scale": zeros("F16", 16, 8, 1), "norm": zeros("F32", 8, 2)})
write_safetensors("exl3.safetensors", {"l.trellis": zeros("I16", 64, 2, 2, 8), "l.suh": zeros("F16", 32, 16),
                                       "l.svh": zeros("F16", 32, 16)})
P
$HEFT ls --raw decoded.safetensors | cut -f 1-3
echo "== the natural type"; $HEFT convert --dequantize rows.safetensors out.safetensors
$HEFT ls --raw out.safetensors | cut -f 1-3
echo "== quietly, in another format, by rules"
$HEFT convert -q --dequantize=bf16 --rename s/l/layer/ --drop norm rows.safetensors out.gguf && $HEFT ls --raw out.gguf | cut -f 1-3
echo "== a type that is no float"; $HEFT convert --dequantize=i8 rows.safetensors no.safetensors || echo "= $?"
echo "== nothing to decode"; $HEFT convert --dequantize small.safetensors no.safetensors || echo "= $?"
echo "== not decoded"; $HEFT convert --dequantize exl3.safetensors no.safetensors || echo "= $?"
echo "== a cast"; $HEFT convert --cast bf16 rows.safetensors no.safetensors || echo "= $?"
[ -e no.safetensors ] || echo "nothing is left"
echo "== merge, split and append decode, too"
$HEFT merge -q --dequantize=f32 rows.safetensors scaled.gguf --duplicates first merged.safetensors && $HEFT ls --raw merged.safetensors | cut -f 1-3
$HEFT split -q --dequantize=f16 --count 2 rows.safetensors shards && $HEFT ls --raw shards | cut -f 1-3
$HEFT convert -q --drop 'l.*' rows.safetensors grown.safetensors && $HEFT append -q --dequantize --drop norm grown.safetensors rows.safetensors && $HEFT ls --raw grown.safetensors | cut -f 1-3
echo "== nothing to decode in any"; $HEFT merge --dequantize small.safetensors decoded.safetensors --duplicates first no.safetensors || echo "= $?"
$HEFT split --dequantize --count 2 small.safetensors no || echo "= $?"
[ -e no.safetensors -o -e no ] || echo "nothing is left"
echo "== blocks of GGUF: every type, and what is no block stays"
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import os, random, struct, subprocess
import gen_gguf, ggml_blocks
rng, heft = random.Random(2), os.environ["HEFT"]
types = [t for t, (_, n, _) in ggml_blocks.TYPES.items() if n > 1 and t not in ("q8_1", "q8_k")]
raw = {t: ggml_blocks.draw(t, 5 * 768, rng) for t in types}
tensors = [(f"{t}.weight", t, (5, 768), raw[t]) for t in types]
meta = [("general.architecture", "str", "llama"), ("general.file_type", "u32", 15), ("general.quantization_version", "u32", 2)]
norm = [("norm", "f32", (2,), struct.pack("<2f", 1, 2)), ("half", "f16", (2,), struct.pack("<2e", 1, 2))]
open("blocks.gguf", "wb").write(gen_gguf.File([*tensors, *norm], meta).bytes())
subprocess.run([heft, "convert", "-q", "--dequantize", "blocks.gguf", "plain.gguf"], check=True)
bits = lambda x: struct.pack("<f", x) if x == x else b"NaN"
good = 0
for t in types:
    got = subprocess.run([heft, "cat", "plain.gguf", t + ".weight"], capture_output=True).stdout
    want = ggml_blocks.decode(t, raw[t])
    good += [bits(x[0]) for x in struct.iter_unpack("<f", got)] == [bits(x) for x in want]
print(good == len(types) > 20, f"{good} of {len(types)}")
P
$HEFT ls --raw plain.gguf | cut -f 2 | sort | uniq -c; $HEFT info plain.gguf | grep -A1 Metadata
$HEFT convert --dequantize=bf16 --keep 'q4_k*' --keep norm blocks.gguf half.safetensors && $HEFT ls --raw half.safetensors | cut -f 1-3
$HEFT convert -q --cast 'q4_k*=bf16' --keep 'q4_k*' --keep norm blocks.gguf cast.safetensors && $HEFT diff --ignore-metadata half.safetensors cast.safetensors
echo "== numbers of blocks that f16 does not have"
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import struct, gen_gguf
open("large.gguf", "wb").write(gen_gguf.File([("l.weight", "q8_0", (1, 32), struct.pack("<e32b", 1000, *[100] * 32))]).bytes())
P
$HEFT convert -q --dequantize=f16 large.gguf over.safetensors || echo "= $?"
[ -e over.safetensors ] || echo "nothing is left"
$HEFT convert -q --dequantize large.gguf fits.safetensors && $HEFT cat fits.safetensors l.weight | od -An -tf4 -N4
echo "== numbers of schemes that f16 does not have"
$PYTHON - <<'P'
import struct
from samples import write_safetensors
def fp8(name, code, scale, type_="F32"):
    scales = struct.pack("<f", scale) if type_ == "F32" else bytes([scale])
    write_safetensors(name, {"l.weight": ("F8_E4M3", [8, 8], bytes([0x38] * 63 + [code])),
                             "l.weight_scale_inv": (type_, [1, 1], scales)})
fp8("scale.safetensors", 0xBE, 40000.0)         # -1.75 * 40000
fp8("border.safetensors", 0x38, 65519.996)      # rounds to 65504
fp8("infinite.safetensors", 0x38, float("inf"))
e8m0 = lambda name, scale: write_safetensors(name, {
    "e.gate_up_proj_blocks": ("U8", [1, 2, 1, 16], bytes([0x22] * 31 + [0x27])),
    "e.gate_up_proj_scales": ("U8", [1, 2, 1], bytes([127, scale]))})
e8m0("mxfp4.safetensors", 127 + 14)             # 6 * 2^14
e8m0("fits.mxfp4.safetensors", 127 + 13)        # 6 * 2^13
P
for f in scale mxfp4; do $HEFT convert -q --dequantize=f16 $f.safetensors over.safetensors || echo "= $?"; done
[ -e over.safetensors ] || echo "nothing is left"
$HEFT convert -q --dequantize=f16 --to safetensors mxfp4.safetensors - | wc -c
$HEFT convert -q --dequantize=f32 --cast f16 scale.safetensors over.safetensors || echo "= $?"
$HEFT convert -qf --dequantize=f32 --cast f16 --strict scale.safetensors over.safetensors || echo "= $?"
for f in border infinite fits.mxfp4; do
    $HEFT convert -qf --dequantize=f16 $f.safetensors half.safetensors || echo "= $?"
    $PYTHON -c "
import numpy as np, struct, json
b = open('half.safetensors', 'rb').read()
x = np.frombuffer(b[8 + struct.unpack('<Q', b[:8])[0]:], '<f2')
print('$f', x.max(), x.min())"
done
