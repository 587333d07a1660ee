# A quantised tensor is cast with its scale; a cast of a stored part is refused, unless --raw-tensors is given.
$PYTHON -c "
from samples import *
write_safetensors('q.safetensors', {
    'l.weight': ('F8_E4M3', [2, 2], bytes([0x38] * 4)), 'l.weight_scale': ('F32', [], f32(.5))})
write_safetensors('exl3.safetensors', {'l.trellis': ('I16', [1, 2], bytes(4)), 'l.suh': ('F16', [1], bytes(2)),
                                       'l.svh': ('F16', [1], bytes(2))})"
$HEFT cat q.safetensors l.weight | od -An -tx1
$HEFT cat --cast f32 q.safetensors l.weight | od -An -tf4
$HEFT cat --cast f64 q.safetensors l.weight_scale; echo "= $?"
$HEFT cat --raw-tensors q.safetensors l.weight | od -An -tx1
$HEFT cat --raw-tensors --cast f32 q.safetensors l.weight | od -An -tf4
$HEFT show q.safetensors l.weight
$HEFT show --json --cast f32 q.safetensors l.weight; echo "= $?"
$HEFT show --raw-tensors --cast f32 q.safetensors l.weight
for c in cat show; do $HEFT $c --cast f32 exl3.safetensors l.trellis; echo "= $?"; done
