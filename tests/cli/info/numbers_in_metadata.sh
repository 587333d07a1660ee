$HEFT convert --set epoch=3 --set rate=0.5 --set big=18446744073709551615 --set neg=-7 \
    --set huge=1e300 small.safetensors m.mag
$HEFT info --json m.mag | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["metadata"])'
$HEFT info m.mag | grep -A4 Metadata
