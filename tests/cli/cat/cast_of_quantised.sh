# A cast of a part of a quantised tensor is refused; the stored bytes and values can always be seen.
$PYTHON -c "
from samples import *
write_safetensors('q.safetensors', {
    'l.weight': ('F8_E4M3', [2, 2], bytes([0x38] * 4)), 'l.weight_scale': ('F32', [], f32(.5))})"
$HEFT cat q.safetensors l.weight | od -An -tx1
$HEFT cat --cast f32 q.safetensors l.weight; echo "= $?"
$HEFT cat --cast f64 q.safetensors l.weight_scale; echo "= $?"
$HEFT cat --raw-tensors --cast f32 q.safetensors l.weight | od -An -tf4
$HEFT show q.safetensors l.weight
$HEFT show --cast f32 q.safetensors l.weight; echo "= $?"
$HEFT show --json --cast f32 q.safetensors l.weight; echo "= $?"
$HEFT show --raw-tensors --cast f32 q.safetensors l.weight
