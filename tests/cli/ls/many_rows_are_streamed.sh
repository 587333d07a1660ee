$PYTHON -c '
from samples import *
write_safetensors("many.safetensors", {"tensor.%06d" % i: ("U8", [1], b"x") for i in range(60000)})'
$HEFT ls many.safetensors > table
head -2 table; tail -1 table; wc -l < table
$HEFT ls --raw many.safetensors | tail -1
$HEFT ls --json many.safetensors | $PYTHON -c 'import json, sys; print(len(json.load(sys.stdin)["tensors"]))'
