# Harmful characters are escaped; their neighbours are printed.
$PYTHON -c '
from samples import write_safetensors
codes = [0x1e, 0x1f, 0x20, 0x5b, 0x5c, 0x5d, 0x7e, 0x7f, 0x80, 0x9f, 0xa0, 0x61b, 0x61c, 0x61d, 0x7ff,
         0x800, 0x200d, 0x200e, 0x200f, 0x2010, 0x2027, 0x2028, 0x202e, 0x202f, 0x2065, 0x2066,
         0x2069, 0x206a, 0xd7ff, 0xe000, 0xfefe, 0xfeff, 0xff00, 0xffff, 0x10000, 0x10ffff]
write_safetensors("c.safetensors", {f"{c:06x} {chr(c)}{end}": ("U8", [1], b"x")
                                    for c in codes for end in ("", ".", "12345678")})'
$HEFT ls --raw c.safetensors | cut -f1
# Bytes that are not UTF-8, next to the bytes of the first or last character.
for name in '\200' '\277' '\301\277' '\302\177' '\302\200' '\302' '\340\237\277' '\340\240\200' \
    '\340\240' '\355\237\277' '\355\240\200' '\356\200\200' '\360\217\277\277' '\360\220\200\200' \
    '\360\220\200' '\364\217\277\277' '\364\220\200\200' '\365\200\200\200' '\303\300' '\303\100'; do
    $HEFT ls "$(printf "./$name")" 2>&1
done
