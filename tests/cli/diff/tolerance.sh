$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {"v": ("F32", [3], f32(1, 100, 0))})
write_safetensors("b.safetensors", {"v": ("F32", [3], f32(1.25, 101, 0.125))})'
for t in "" "--atol 0.25" "--atol 1" "--rtol 0.01" "--atol 0.125 --rtol 0.1"; do
    $HEFT diff $t a.safetensors b.safetensors; echo "$t: $?"
done
$HEFT diff --atol x a.safetensors b.safetensors; echo $?
$HEFT diff --atol -1 a.safetensors b.safetensors; echo $?
