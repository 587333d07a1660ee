$HEFT convert small.safetensors m.zt
$PYTHON -c "
from samples import *
write_safetensors('a.safetensors', {'w': ('F32', [1], f32(9)), 'x': ('F32', [1], f32(1))})
write_safetensors('b.safetensors', {'x': ('F32', [1], f32(2)), 'y': ('F32', [1], f32(3))})"
cp m.zt n.zt
$HEFT append --duplicates first n.zt a.safetensors b.safetensors
for t in w x y; do $HEFT show n.zt $t | tail -1; done
$HEFT append --duplicates last m.zt a.safetensors b.safetensors || echo "= $?"
$HEFT append --duplicates last --drop w m.zt a.safetensors b.safetensors
for t in w x y; do $HEFT show m.zt $t | tail -1; done
$HEFT append -v --duplicates first m.zt a.safetensors
