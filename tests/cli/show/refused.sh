# Tensors and casts that cannot be shown, with or without a slice, and read by cat.
$PYTHON -c '
import struct
from samples import write_safetensors
write_safetensors("deep.safetensors", {"axes20": ("U8", [2] * 20, bytes(1 << 20)),
                                       "axes21": ("U8", [2] * 21, bytes(1 << 21)),
                                       "axes64": ("U8", [1] * 64, b"7"),
                                       "axes65": ("U8", [1] * 65, b"7")})
info = struct.pack("<Q", 1) + b"w" + struct.pack("<IQIQ", 1, 256, 43, 0)
head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info
open("later.gguf", "wb").write(head + bytes(-len(head) % 32) + bytes(66))'
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import gen_ztensor1, gen_ztensor2
eight = ("t", "u8", (8,), bytes(8))
for name, layout, roles in ("more", "dense", ("data", "extra")), ("own", "x.own", ("data",)):
    f = gen_ztensor1.File("1.0")
    parts = {r: f.part("u8", bytes(8)) for r in roles}
    open(f"{name}.zt", "wb").write(f.end(f.root({"t": f.tensor("u8", (8,), layout, parts)})))
f = gen_ztensor2.File()
open("odd.zt", "wb").write(f.end({"objects": {"t": f.dense(eight, type="x.odd")}}))
P
$HEFT convert --sparsify '*=csr' --keep layer.weight two.safetensors sparse.zt
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
$HEFT show deep.safetensors axes20 | tr -dc 0 | wc -c
try show deep.safetensors axes21
try show deep.safetensors 'axes21[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]'
try show deep.safetensors 'axes64[...]'
try show deep.safetensors 'axes65[...]'
try show later.gguf w
try show later.gguf 'w[0]'
try show --json later.gguf w
try show --cast f16 later.gguf w
try show --cast iq2_xxs two.safetensors layer.weight
try show --cast c64 two.safetensors layer.weight
try show sparse.zt 'layer.weight[0]'
try show --json sparse.zt layer.weight
for file in more own odd; do
    try show $file.zt "t[0]"
done
try cat --npy own.zt t
try cat sparse.zt layer.weight
try cat sparse.zt 'layer.weight[0]'
try cat --cast nothing two.safetensors layer.weight
try cat --cast iq2_xxs two.safetensors layer.weight
