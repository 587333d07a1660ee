# A cast is proposed only if the new type holds every value of the old one.
$PYTHON -c "
from samples import *
write_safetensors('t.safetensors', {
    'ids': ('I64', [1], i64(16777217)), 'wide': ('F64', [1], bytes(8)), 'u32': ('U32', [1], bytes(4)),
    'small': ('I16', [1], bytes(2)), 'tiny': ('F8_E5M2', [1], bytes(1)), 'mask': ('BOOL', [1], bytes(1))})"
$HEFT convert -v t.safetensors t.mag; echo "= $?"
