# Quantised tensors are compared by value with other models: RMSE, maximum and cosine, and the worst.
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import json, random
import gen_gguf, ggml_blocks
rng = random.Random(2)
raw = {f"l.{i}.weight": ggml_blocks.draw("q4_k", 256, rng) for i in range(12)}
tensors = [(n, "q4_k", (1, 256), r) for n, r in raw.items()]
open("blocks.gguf", "wb").write(gen_gguf.File(tensors).bytes())
open("beside.gguf", "wb").write(gen_gguf.File(tensors + [("plain", "f32", (1, ), b"\0\0\x80?")]).bytes())
json.dump({n: list(ggml_blocks.decode("q4_k", r)) for n, r in raw.items()}, open("decoded.json", "w"))
P
PYTHONPATH=$CASES $PYTHON - <<'P'
import json, math, os, random, struct, subprocess
import quantised_samples as q
from samples import write_safetensors
values = q.write()
rng = random.Random(3)
decoded = json.load(open("decoded.json"))
near = {n: [q.f32(x * (1 + rng.uniform(-.01, .01) * i)) for x in xs] for i, (n, xs) in enumerate(decoded.items())}
write_safetensors("near.safetensors", {n: ("F32", [1, 256], struct.pack("<256f", *xs)) for n, xs in near.items()})
write_safetensors("more.safetensors", {n: ("F32", [1, 256], struct.pack("<256f", *xs)) for n, xs in near.items()} |
                  {"plain": ("F32", [1], struct.pack("<f", 9)), "alone": ("F32", [1], bytes(4))})
other = {n: [x * 1.25 + .001 for x in values[n]] for n in ("a.weight", "b.weight")}
write_safetensors("other.safetensors", {n: ("F32", [6, 20] if n == "a.weight" else [130, 140],
                                            struct.pack(f"<{len(x)}f", *x)) for n, x in other.items()})
def diff(a, b):
    out = subprocess.run([os.environ["HEFT"], "diff", "--json", a, b], capture_output=True).stdout
    return {c["name"]: c for c in json.loads(out)["changed"] if c["what"] == "value"}
def same(x, y):
    return math.isclose(x, y, rel_tol=1e-9)
def judge(c, a, b):
    n, pairs = len(a), list(zip(a, b))
    rmse = math.sqrt(sum((x - y) ** 2 for x, y in pairs) / n)
    cosine = sum(x * y for x, y in pairs) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return same(c["rmse"], rmse) and same(c["cosine"], cosine) and same(c["max_abs"], max(abs(x - y) for x, y in pairs))
write_safetensors("short.safetensors", {"a.weight": ("F32", [2, 60], bytes(480))})
bf16 = lambda xs: [struct.unpack("<f", struct.pack("<I", q.bf16(x) << 16))[0] for x in xs]
found = diff("other.safetensors", "fp8.safetensors")
print("fp8", sorted(found), all(judge(found[n], list(map(q.f32, other[n])), bf16(values[n])) for n in other))
print(*((c["type_a"], c["type_b"]) for c in found.values()))
found = diff("near.safetensors", "blocks.gguf")
print("q4_k", len(found), all(judge(c, near[n], decoded[n]) for n, c in found.items() if n != "l.0.weight"))
P
echo "== equal"; $HEFT diff true.safetensors fp8.safetensors; echo "= $?"
echo "== what is stored"; $HEFT diff --raw-tensors true.safetensors fp8.safetensors; echo "= $?"
echo "== types"; $HEFT diff other.safetensors fp8.safetensors | cut -c 1-60; $HEFT diff fp8.safetensors true.safetensors -v
echo "== the worst"; $HEFT diff --ignore-metadata near.safetensors blocks.gguf | sed -n '/farthest/,$p' | cut -c 1-72
echo "== the worst, beside others"; $HEFT diff --ignore-metadata more.safetensors beside.gguf | sed -n '/farthest/,$p' | cut -d ' ' -f 1-5
echo "== another shape"; $HEFT diff fp8.safetensors short.safetensors | tail -1
echo "== by cosine"; $HEFT diff --sort cosine --limit 2 near.safetensors blocks.gguf | cut -d ' ' -f 1
