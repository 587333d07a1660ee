$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {"bf": ("BF16", [2], bytes.fromhex("803f0040")), "f8": ("F8_E4M3", [2], bytes.fromhex("3840"))})
write_safetensors("b.safetensors", {"bf": ("BF16", [2], bytes.fromhex("803f4040")), "f8": ("F8_E4M3", [2], bytes.fromhex("3848"))})'
$HEFT diff a.safetensors b.safetensors
