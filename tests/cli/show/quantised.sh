# show, cat and stats give the numbers of quantised tensors; --raw-tensors gives what is stored.
PYTHONPATH=$CASES $PYTHON - <<'P'
import json, math, os, struct, subprocess
import quantised_samples as q
from samples import write_safetensors
values = q.write()
run = lambda *args: subprocess.run([os.environ["HEFT"], *args], capture_output=True).stdout
for name in "a.weight", "b.weight":
    print(name, run("cat", "fp8.safetensors", name) == q.bf16s(values[name]))
print("c.weight", run("cat", "gptq.safetensors", "c.weight") == struct.pack("<512e", *values["c.weight"]))
for t in json.loads(run("stats", "--json", "gptq.safetensors"))["tensors"][:1]:
    c = values["c.weight"]
    print(t["name"], t["type"], t["shape"], t["min"] == min(c), t["max"] == max(c), math.isclose(t["mean"], sum(c) / 512))
print(json.loads(run("show", "--json", "gptq.safetensors", "c.weight[3,:5]"))["values"] == values["c.weight"][96:101])
exl3 = lambda dtype, n, *shape: (dtype, list(shape), bytes(n))
write_safetensors("exl3.safetensors", {"l.trellis": exl3("I16", 64, 2, 2, 8), "l.suh": exl3("F16", 32, 16),
                                       "l.svh": exl3("F16", 32, 16)})
lost = dict(w=("F8_E4M3", [16, 16], bytes(256)), s=("F32", [1], bytes(4)))
write_safetensors("lost.safetensors", {"a.weight": lost["w"], "b.weight": lost["w"], "b.weight_scale": lost["s"],
                                       "norm": ("F32", [1], bytes(4))})
P
$HEFT show fp8.safetensors 'a.weight[0,:3]'
$HEFT show --cast f32 fp8.safetensors 'a.weight[0,:3]'
$HEFT show --raw-tensors fp8.safetensors 'a.weight[0,:3]'
echo "== statistics"
$HEFT stats --raw fp8.safetensors | cut -f 1-3
$HEFT stats --raw --raw-tensors fp8.safetensors | cut -f 1-3
echo "== parts"
for t in a.weight_scale_inv 'a.weight_scale_inv[0]'; do $HEFT show fp8.safetensors "$t" || echo "= $?"; done
$HEFT cat gptq.safetensors c.qzeros || echo "= $?"
echo "== not decoded"; $HEFT show exl3.safetensors 'l.trellis[0,0]'
$HEFT show --cast f32 exl3.safetensors 'l.trellis[0,0]' || echo "= $?"
echo "== a scale is missing"
for c in 'show lost.safetensors norm' 'stats lost.safetensors' 'cat lost.safetensors a.weight' 'diff lost.safetensors fp8.safetensors'; do
    $HEFT $c || echo "= $?"
done
$HEFT show --raw-tensors lost.safetensors norm
