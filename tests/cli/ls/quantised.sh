# A quantised tensor is one tensor of the list: type, logical shape, stored size. --raw-tensors lists what is stored.
$PYTHON - <<'P'
import os
from samples import write_safetensors
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
tensors = {
    "a.weight": zeros("F8_E4M3", 130 * 256, 130, 256), "a.weight_scale_inv": zeros("F32", 16, 2, 2),
    "b.weight": zeros("F8_E4M3", 256, 16, 16), "b.weight_scale": zeros("F16", 32, 16, 1),
    "c.weight": zeros("F8_E5M2", 256, 16, 16), "c.weight_scale": zeros("F32", 4, 1),
    "l.qweight": zeros("I32", 1024, 8, 32), "l.qzeros": zeros("I32", 32, 2, 4), "l.scales": zeros("F16", 128, 2, 32),
    "norm": zeros("BF16", 32, 16)}
write_safetensors("fp8.safetensors", tensors)
os.mkdir("mlx")
write_safetensors("mlx/one.safetensors", {"w.weight": zeros("U32", 64, 2, 8), "w.scales": zeros("F16", 4, 2, 1),
                                          "w.biases": zeros("F16", 4, 2, 1), "norm": zeros("F32", 8, 2)})
open("mlx/config.json", "w").write('{"quantization": {"bits": 4, "group_size": 64}}')
del tensors["a.weight_scale_inv"]
write_safetensors("lost.safetensors", tensors)
write_safetensors("exl3.safetensors", {"l.trellis": zeros("I16", 64, 2, 2, 8), "l.suh": zeros("F16", 32, 16),
                                       "l.svh": zeros("F16", 32, 16), "b.weight": tensors["b.weight"],
                                       "b.weight_scale": tensors["b.weight_scale"]})
P
$HEFT ls -l --totals fp8.safetensors
echo "== stored"; $HEFT ls --totals --raw-tensors fp8.safetensors
echo "== raw rows"; $HEFT ls --raw -l --sort size fp8.safetensors
echo "== types"; $HEFT ls --raw --dtype fp8-block/bf16 --dtype bf16 --dtype gptq-4bit/f16 --sort dtype fp8.safetensors
echo "== modules"; $HEFT ls --tree fp8.safetensors
echo "== settings beside a single file"; $HEFT ls --raw mlx/one.safetensors
echo "== JSON"; $HEFT ls --json fp8.safetensors a.weight norm
echo "== a scale is missing"; $HEFT ls --raw lost.safetensors 'a.*' 'b.*'
echo "== quietly"; $HEFT ls -q --raw lost.safetensors 'a.*'
echo "== not decoded"; $HEFT ls --raw --tree exl3.safetensors
