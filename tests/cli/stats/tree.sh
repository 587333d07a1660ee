# Joint statistics of modules, judged by NumPy where it is there.
$PYTHON - <<'P'
import json, os, struct, subprocess, math
from samples import write_safetensors
values = {"h.0.a": [1.0, 2.0, math.nan], "h.0.b": [0.0, 5.0], "h.1.a": [-3.0], "top": [7.0, math.inf]}
write_safetensors("t.safetensors", {n: ("F32", [len(v)], struct.pack(f"<{len(v)}f", *v))
                                    for n, v in values.items()})
heft = os.environ["HEFT"]
out = subprocess.run([heft, "stats", "--json", "--tree", "t.safetensors"], capture_output=True).stdout
for m in json.loads(out)["modules"]:
    all_values = [x for n, v in values.items() if n.startswith(m["name"]) for x in v]
    finite = [x for x in all_values if math.isfinite(x)]
    mean = sum(finite) / len(finite)
    std = math.sqrt(sum((x - mean) ** 2 for x in finite) / len(finite))
    want = (len(all_values), min(finite), max(finite), all_values.count(0.0))
    assert (m["count"], m["min"], m["max"], m["zeros"]) == want, m
    assert abs(m["mean"] - mean) < 1e-12 and abs(m["std"] - std) < 1e-12, m
    assert m["sparsity"] == all_values.count(0.0) / len(all_values), m
    assert m["nan"] == sum(map(math.isnan, all_values)), m
print([m["name"] for m in json.loads(out)["modules"]])
P
$HEFT stats --tree t.safetensors
$HEFT stats --tree --depth 1 --raw t.safetensors
$HEFT stats --quantiles t.safetensors 'h.0.*'
$HEFT stats --depth 1 t.safetensors; echo "exit $?"
# Quantiles belong to tensors; types that are not numbers have no statistics.
$PYTHON -c '
import struct
from samples import f32
def entry(name, size, kind, offset):
    return struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, size, kind, offset)
head = b"GGUF" + struct.pack("<IQQ", 3, 2, 0) + entry(b"m.q", 256, 16, 0) + entry(b"m.w", 2, 0, 96)
open("iq2.gguf", "wb").write(head + bytes(-len(head) % 32) + bytes(96) + f32(1, 2))'
$HEFT stats --tree --quantiles iq2.gguf
$HEFT stats --tree --raw --quantiles iq2.gguf
$HEFT stats --quantiles types.safetensors none b
