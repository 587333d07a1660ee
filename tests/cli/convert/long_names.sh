# ggml loads no file with a name of more than 63 bytes.
n=$(printf '%070d' 0)
$PYTHON -c "
from samples import *
write_safetensors('long.safetensors', {'$n': ('F32', [1], f32(1)), 'a' * 63: ('F32', [1], f32(1))})"
$HEFT convert long.safetensors a.gguf; echo "= $?"
$HEFT convert --strict long.safetensors b.gguf; echo "= $?"; ls b.gguf 2> /dev/null
$HEFT convert --strict --rename "$n=w" long.safetensors b.gguf; echo "= $?"
$HEFT edit --set general.name=x a.gguf; echo "= $?"
