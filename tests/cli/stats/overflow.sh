# Squares of the deviations that exceed the range of f64.
$PYTHON -c '
import struct
from samples import *
write_safetensors("m.safetensors", {
    "one": ("F64", [2], struct.pack("<2d", -1e300, 3)), "many": ("F64", [3], struct.pack("<3d", 1e308, 1e308, 1e308))})'
$HEFT stats m.safetensors
$HEFT stats --json m.safetensors
