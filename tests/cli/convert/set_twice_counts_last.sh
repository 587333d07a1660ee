$HEFT convert --set a=1 --set b=2 --set a=3 small.safetensors a.mag
$HEFT info --json a.mag | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["metadata"])'
