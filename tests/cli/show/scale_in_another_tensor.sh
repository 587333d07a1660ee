# The scale of a tensor of nvfp4 is another tensor of the file, which the numbers shown include.
PYTHONPATH=$CASES/../py:$CASES $PYTHON - <<'P'
import struct
import gen_gguf
def f32(*x):
    return struct.pack(f"<{len(x)}f", *x)
# Scales 1, 0.5, 2 and, as the sign does not count, 1; the codes 0 to 15 in order.
block = bytes([0x38, 0x30, 0x40, 0xB8]) + bytes(i | i + 8 << 4 for i in range(8)) * 4
def write(name, *more):
    tensors = [("a.weight", "nvfp4", (2, 64), block * 2), *more]
    open(name, "wb").write(gen_gguf.File(tensors).bytes())
half = ("a.scale", "f32", (1,), f32(.5))
write("none.gguf")
write("one.gguf", half, ("a.input_scale", "f32", (1,), f32(.25)))
write("experts.gguf", ("a.weight.scale", "f32", (2,), f32(.5, .25)))
write("two.gguf", half, ("b.weight", "nvfp4", (1, 64), block), ("b.scale", "f32", (1,), f32(3)))
P
for f in none one experts two; do
    echo "-- $f"
    $HEFT show $f.gguf 'a.weight[0,:32]'
    $HEFT stats --raw $f.gguf '*.weight' | cut -f 1-7
    $HEFT convert -f --cast f32 $f.gguf $f.safetensors; echo "= $?"
done
$HEFT show --json two.gguf 'b.weight[0,1:4]'
$HEFT show --raw-tensors one.gguf 'a.weight[1,16:20]'
$HEFT show --raw-tensors --cast f16 one.gguf 'a.weight[1,16:20]'
$HEFT show --cast f16 one.gguf 'a.weight[1,16:20]'; echo "= $?"
$HEFT convert --raw-tensors --cast f32 one.gguf raw.safetensors
$HEFT show raw.safetensors 'a.weight[0,1:4]'
# Numbers are compared with their scales.
$HEFT diff none.gguf one.gguf
$HEFT diff one.gguf none.safetensors; echo "= $?"
