$HEFT info -v two.safetensors | sed 's/[0-9.]* KiB ([0-9]* bytes)$/N/'
$HEFT info -v --json two.safetensors | $PYTHON -c '
import json, sys; print(json.load(sys.stdin)["memory"] > 0)'
