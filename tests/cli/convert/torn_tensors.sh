# Parts of a quantised tensor that leave each other mean nothing: a warning, and an error under --strict.
mkdir fp8
$PYTHON -c "
from samples import *
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors('fp8/model.safetensors', {
    'l.weight': zeros('F8_E4M3', 64, 8, 8), 'l.weight_scale_inv': zeros('F32', 4, 1, 1),
    'l.input_scale': zeros('F32', 4), 'norm.weight': zeros('F32', 16, 4)})"
for way in --drop=*_scale_inv --keep=*_scale_inv --keep=l.weight --rename=l.weight=m.weight; do
    echo "== $way"; $HEFT convert --force $way fp8 a.safetensors || echo "= $?"
    $HEFT convert --force --strict $way fp8 a.safetensors || echo "= $?"
done
echo "== nothing is torn"
$HEFT convert --strict --drop '*input_scale' fp8 b.safetensors && $HEFT convert --strict --drop 'l.*' fp8 c.safetensors
$HEFT convert --strict --rename 's/^l/layer/' fp8 d.safetensors && $HEFT ls --raw-tensors --raw d.safetensors | cut -f 1
echo "== append"; $HEFT append --keep '*_inv' c.safetensors fp8 && $HEFT append --strict --keep l.weight c.safetensors fp8 || echo "= $?"
echo "== edit"; cp fp8/model.safetensors e.safetensors
$HEFT edit --strict --rename l.weight_scale_inv=l.factor e.safetensors || echo "= $?"
$HEFT edit --rename l.weight_scale_inv=l.factor e.safetensors && $HEFT ls --raw-tensors --raw e.safetensors | cut -f 1
