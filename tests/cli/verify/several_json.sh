$HEFT verify --json two.safetensors page.safetensors missing.safetensors cut.safetensors > out
echo $?
$PYTHON -c '
import json
for r in json.load(open("out")):
    print(r["file"], r["format"], r["ok"], [(f["severity"], f["rule"]) for f in r["findings"]], r["bytes_checked"])'
