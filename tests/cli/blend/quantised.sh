# quantised models are decoded if that is asked for; a block type is read, and not written
$PYTHON - <<'END'
import numpy as np
from arrays import save
r = np.random.default_rng(1)
save("a.safetensors", **{"up.weight": r.standard_normal((64, 128)).astype(np.float32)})
save("b.safetensors", **{"up.weight": r.standard_normal((64, 128)).astype(np.float32)})
END
$HEFT convert -q --quantize fp8 a.safetensors fp8.safetensors 2> /dev/null
$HEFT convert -q --cast q8_0 b.safetensors b.gguf 2> /dev/null
try() { $HEFT blend -f --method linear "$@" out.safetensors; echo "exit $?"; }
try fp8.safetensors b.safetensors
try --dequantize=f32 fp8.safetensors b.safetensors
try b.gguf a.safetensors
try --dtype bf16 b.gguf a.safetensors
$HEFT ls out.safetensors
# the same numbers as those of the decoded files
$HEFT convert -q --dequantize=f32 fp8.safetensors decoded.safetensors 2> /dev/null
$HEFT convert -q --cast f32 b.gguf b32.safetensors
$HEFT blend --method linear --dequantize=f32 --dtype f32 fp8.safetensors b.gguf first.safetensors 2> /dev/null
$HEFT blend --method linear decoded.safetensors b32.safetensors second.safetensors
$HEFT diff first.safetensors second.safetensors
