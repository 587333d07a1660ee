$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {"w": ("F32", [2], f32(1, 2)), "v": ("F32", [1], f32(3))},
                  {"heft.burn.param_id/v": "18446744073709551615", "heft.burn.param_id/gone": "1",
                   "heft.burn.param_id/w": "no number", "heft.gptrs.requires_grad/w": "true", "x": "y"})'
$HEFT ls --json a.safetensors | $PYTHON -c '
import json, sys
m = json.load(sys.stdin)
print([t["attributes"] for t in m["tensors"]], m["metadata"])'
$HEFT convert a.safetensors a.bpk 2>&1
$HEFT convert --no-format-key a.bpk b.safetensors && $HEFT convert b.safetensors b.bpk && cmp a.bpk b.bpk && echo same
