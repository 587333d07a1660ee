$HEFT info two.safetensors small.safetensors
$HEFT info small.safetensors nothing two.safetensors cut.safetensors | grep ^File
$HEFT info --json small.safetensors nothing >list
echo "exit $?"
$PYTHON -c 'import json; print([d["file"] for d in json.load(open("list"))])'
$HEFT info --json nothing
echo "exit $?"
