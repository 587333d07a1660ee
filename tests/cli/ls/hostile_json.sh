$HEFT ls --json hostile.safetensors | $PYTHON -c '
import json, sys, samples
d = json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"))
print([t["name"] for t in d["tensors"]] == samples.HOSTILE, d["metadata"] == {"k\n\"": "v\u2028\x1b"})'
