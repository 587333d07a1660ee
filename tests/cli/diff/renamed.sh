# Tensors with other names are found by their content; tied ones in the order of the file.
$PYTHON -c '
from samples import *
w = ("F32", [2], f32(1, 2))
write_safetensors("a.safetensors", {"x.w": w, "x.tied": w, "x.gone": ("F32", [1], f32(5)), "type": ("F32", [1], f32(1))})
write_safetensors("b.safetensors", {"y.w": w, "y.tied": w, "y.third": w, "y.type": ("I32", [1], f32(1))})'
$HEFT diff a.safetensors b.safetensors; echo $?
$HEFT diff --json a.safetensors b.safetensors; echo $?
$HEFT diff --rename 's/^x/y/' a.safetensors b.safetensors; echo $?
$HEFT diff --rename x.w=y.third --rename zz=y a.safetensors b.safetensors; echo $?
$HEFT diff --rename 's/.*/y/' a.safetensors b.safetensors; echo $?
$HEFT diff --rename 'y' a.safetensors b.safetensors; echo $?
$HEFT convert --digest crc32c a.safetensors a.zt
$PYTHON -c '
b = bytearray(open("a.zt", "rb").read())
b[b.index(bytes.fromhex("0000a040"))] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT diff bad.zt b.safetensors; echo $?
