$HEFT info bert | sed -n '/^Parameters/,/^Alignment/p'
$HEFT info --json bert | $PYTHON -c '
import json, sys
d = json.load(sys.stdin)
for key in "model", "parameters", "by_dtype", "modules":
    print(key, d[key])
assert d["parameters"] == sum(t["parameters"] for t in d["by_dtype"]) == sum(t["parameters"] for t in d["modules"])'
# Tensors that share their bytes count once; many modules are counted.
$PYTHON -c '
from samples import write_nested
write_nested("nested.pt")'
$HEFT info nested.pt | sed -n '/^Parameters/,/^Alignment/p'
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("m.safetensors", {"m%d.w" % i: ("F32", [2], f32(1, 2)) for i in range(13)})'
$HEFT info m.safetensors | sed -n '/^Modules/,/^Alignment/p'
