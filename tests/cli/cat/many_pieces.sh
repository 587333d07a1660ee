$PYTHON -c '
import os
from samples import *
data = bytes(range(251)) * 20000
write_safetensors("big.safetensors", {"x": ("U8", [len(data)], data)})
open("want", "wb").write(data)'
$HEFT cat big.safetensors x | cmp - want && echo same
