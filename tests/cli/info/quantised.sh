# info says that a model is quantised, and how.
mkdir m n
$PYTHON -c "
from samples import *
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors('m/model.safetensors', {
    'l.qweight': zeros('I32', 1024, 64, 4), 'l.qzeros': zeros('I32', 32, 2, 4), 'l.scales': zeros('F16', 128, 2, 32),
    'a.weight': zeros('F8_E4M3', 256, 16, 16), 'a.weight_scale_inv': zeros('F32', 4, 1, 1),
    'b.weight': zeros('F8_E4M3', 256, 16, 16), 'b.weight_scale': zeros('F32', 64, 16, 1),
    'c.weight': zeros('U32', 32, 1, 8), 'c.scales': zeros('F16', 2, 1, 1), 'c.biases': zeros('F16', 2, 1, 1)})
write_safetensors('n/model.safetensors', {'w': zeros('F32', 4, 1)})"
echo '{"quantization": {"bits": 4, "group_size": 64}}' > m/config.json
for m in m m/model.safetensors n; do $HEFT info $m | grep Quantised -A 3 | sed -n '/^Quantised/p; /^            *[a-z0-9].*parts/p'; done
$HEFT info --json m | $PYTHON -c "import json, sys; print(*json.load(sys.stdin)['quantised'], sep='\n')"
