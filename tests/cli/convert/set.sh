$HEFT convert --set license=BSD --set n=5 --set 'quoted="7"' --set 'text=a=b' small.safetensors a.safetensors 2> err
$HEFT info --json a.safetensors | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["metadata"])'
$HEFT convert --set novalue small.safetensors b.safetensors
