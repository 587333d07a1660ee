# The stored tensors of a quantised model are not numbers: no command casts them without being told to.
mkdir awq fp8 new
$PYTHON -c "
from samples import *
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors('awq/model.safetensors', {
    'l.qweight': zeros('I32', 1024, 64, 4), 'l.qzeros': zeros('I32', 32, 2, 4),
    'l.scales': zeros('F16', 128, 2, 32), 'norm.weight': zeros('F32', 16, 4)})
write_safetensors('fp8/model.safetensors', {
    'l.weight': zeros('F8_E4M3', 64, 8, 8), 'l.weight_scale_inv': zeros('F32', 4, 1, 1),
    'plain.weight': zeros('F8_E4M3', 64, 8, 8)})
write_safetensors('new/model.safetensors', {
    'l.codes': zeros('U8', 64, 8, 8), 'l.range': zeros('F16', 4, 2), 'norm.weight': zeros('F32', 16, 4)})"
echo '{"quantization_config": {"quant_method": "awq", "bits": 4}}' > awq/config.json
echo '{"quantization_config": {"quant_method": "newest"}}' > new/config.json
for cast in bf16 'f16=f32' 'l.qweight=f32' '*.qzeros=i64' 'norm.*=bf16'; do
    echo "== $cast"; $HEFT convert -f --cast "$cast" awq a.safetensors || echo "= $?"
done
echo "== fp8"; $HEFT convert --cast bf16 fp8 b.safetensors || echo "= $?"
echo "== transpose"; $HEFT convert --transpose l.weight fp8 b.safetensors || echo "= $?"
echo "== a plain weight"; $HEFT convert --cast 'plain.*=bf16' fp8 b.safetensors || echo "= $?"
echo "== only one file"; $HEFT convert --cast bf16 fp8/model.safetensors c.safetensors || echo "= $?"
echo "== an unknown method"; $HEFT convert --cast 'f16=f32' new d.safetensors || echo "= $?"
$HEFT convert --cast 'norm.*=f16' new d.safetensors && $HEFT ls --raw d.safetensors | cut -f 1,2
echo "== insisted"; $HEFT convert --raw-tensors --cast bf16 fp8 e.safetensors && $HEFT ls --raw e.safetensors | cut -f 1,2
echo "== append"; $HEFT convert small.safetensors f.zt
$HEFT append --cast 'l.*=f32' f.zt fp8 || echo "= $?"
$HEFT append --raw-tensors --cast '*=f32' f.zt fp8 && $HEFT ls --raw f.zt | cut -f 1,2
echo "== a type that the target has not"; $HEFT convert fp8 g.npz || echo "= $?"
$HEFT convert --raw-tensors --cast 'l.weight=f32' --cast 'plain.weight=f32' fp8 g.npz && $HEFT ls --raw g.npz | cut -f 1,2
