$HEFT ids --json hostile.safetensors | $PYTHON -c '
import json, sys, samples
t = json.load(sys.stdin)["tensors"]
print([x["name"] for x in t] == samples.HOSTILE, [x["base_id"] is None for x in t].count(True))'
