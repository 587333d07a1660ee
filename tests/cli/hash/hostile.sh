$HEFT hash hostile.safetensors | cut -c65-120
$HEFT hash --json hostile.safetensors | $PYTHON -c '
import json, sys, samples
print([t["name"] for t in json.load(sys.stdin)["tensors"]] == samples.HOSTILE)'
