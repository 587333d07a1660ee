echo '{"kind": "gpt", "config": {"n": 1}}' > config.json
$HEFT convert --config config.json small.safetensors m.gptrs
$HEFT ls --json m.gptrs | $PYTHON -c '
import json, sys
d = json.load(sys.stdin)
print(json.dumps(d["parts"]))
for t in d["tensors"]: print(t["name"], json.dumps(t["attributes"]))'
$HEFT info m.gptrs
