# Integers with scales become Burn's quantised tensors; what has no such form is refused.
mkdir model shifted
PYTHONPATH=$CASES $PYTHON - <<'END'
import struct
from samples import write_safetensors
integers = bytes(range(120, 136)) + bytes(range(16))
model = {"a.weight": ("I8", [2, 16], integers), "norm": ("F16", [2], bytes(4)),
         "a.weight_scale": ("F32", [2, 1], struct.pack("<2f", 0.5, 3))}
write_safetensors("model/model.safetensors", model)
model["a.weight_zero_point"] = ("I8", [2, 1], bytes(2))
write_safetensors("shifted/model.safetensors", model)
write_safetensors("empty.safetensors", {"a.weight": ("I8", [0, 16], b""),
                                        "a.weight_scale": ("F32", [0, 1], b"")})
END
$HEFT convert model m.bpk && $HEFT ls --raw m.bpk && $HEFT ls --raw --raw-tensors m.bpk
$HEFT cat --raw-tensors m.bpk a.weight | od -An -v -tx1
$HEFT info m.bpk | grep Quantised
for release in 0.20 0.22 0.22-pre.2; do
    $HEFT convert -q --format-version $release model $release.bpk && $HEFT info $release.bpk | grep Format
    $HEFT ls --json --raw-tensors $release.bpk | grep -o 'QFloat.*Symmetric.*}}'
done
$HEFT convert -q --to burnpack model - | cmp - m.bpk && echo "a pipe gets the same bytes"
$HEFT convert --dry-run model no.bpk && [ ! -e no.bpk ]
$HEFT convert -q --dequantize model decoded.bpk && $HEFT ls --raw decoded.bpk
$HEFT convert -q --raw-tensors model raw.bpk && $HEFT ls --raw raw.bpk
echo "== decoded again"
$HEFT convert --dequantize m.bpk m.safetensors && $HEFT show m.safetensors a.weight
$HEFT convert -q --dequantize=f32 model own.safetensors && cmp m.safetensors own.safetensors
$HEFT diff m.bpk 0.22.bpk
$HEFT convert -q --to ztensor --format-version 1.1 m.bpk m.zt && $HEFT convert -q m.zt again.bpk && cmp m.bpk again.bpk
echo "== refused"
$HEFT convert shifted no.bpk || echo "= $?"
$HEFT convert empty.safetensors no.bpk || echo "= $?"
$HEFT convert --cast a.weight=f32 model no.bpk || echo "= $?"
$HEFT convert m.bpk no.safetensors || echo "= $?"
$HEFT convert m.bpk no.gguf || echo "= $?"
$HEFT convert --cast f16 m.bpk no.bpk || echo "= $?"
$HEFT merge model/model.safetensors m.bpk --duplicates first no.bpk || echo "= $?"
ls no.* 2>/dev/null || echo "nothing is written"
$HEFT convert --allow-loss m.bpk loss.safetensors; echo "= $?"; $HEFT ls --raw loss.safetensors
