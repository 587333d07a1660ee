# info says that a model is quantised, and how; packed numbers count as what they represent, scales do not count.
mkdir m o n
$PYTHON -c "
from samples import *
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors('m/model.safetensors', {
    'l.qweight': zeros('I32', 1024, 64, 4), 'l.qzeros': zeros('I32', 32, 2, 4), 'l.scales': zeros('F16', 128, 2, 32),
    'a.weight': zeros('F8_E4M3', 256, 16, 16), 'a.weight_scale_inv': zeros('F32', 4, 1, 1), 'norm': zeros('F32', 8, 2),
    'b.weight': zeros('F8_E4M3', 256, 16, 16), 'b.weight_scale': zeros('F32', 64, 16, 1)})
write_safetensors('o/model.safetensors', {
    'c.weight': zeros('U32', 32, 1, 8), 'c.scales': zeros('F16', 2, 1, 1), 'c.biases': zeros('F16', 2, 1, 1)})
write_safetensors('n/model.safetensors', {'w': zeros('F32', 4, 1)})"
echo '{"quantization": {"bits": 4, "group_size": 64}}' > o/config.json
for m in m m/model.safetensors o o/model.safetensors n; do
    $HEFT info $m | grep Quantised -A 3 | sed -n '/^Quantised/p; /^            *[a-z0-9].*parts/p'
done
$HEFT info --json m | $PYTHON -c "import json, sys; print(*json.load(sys.stdin)['quantised'], sep='\n')"
$HEFT info m
echo "== stored"; $HEFT info --raw-tensors m | grep -e Quantised -e Parameters -e Types -e Tensors
echo "== JSON"; $HEFT info --json m | $PYTHON -c "
import json, sys
d = json.load(sys.stdin)
print(d['tensors'], d['bytes'], d['parameters'], *d['by_dtype'], *d['modules'], sep='\n')"
echo "== settings that contradict the tensors"
cp o/config.json m; $HEFT info m | grep -e Parameters -e Tensors
echo "== variants of one type are one row"
$PYTHON -c "
from samples import *
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors('variants.safetensors', {
    'a_blocks': zeros('U8', 64, 2, 2, 16), 'a_scales': zeros('U8', 4, 2, 2),
    'b.weight_packed': zeros('U8', 64, 2, 32), 'b.weight_scale': zeros('U8', 4, 2, 2)})"
$HEFT info variants.safetensors | grep -e Quantised -e mxfp4
