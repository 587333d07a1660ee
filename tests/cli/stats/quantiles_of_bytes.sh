# Quantiles of tensors with few different values: the values are counted, and sorted up to 4096.
$PYTHON - <<'P'
import json, os, random, struct, subprocess
from samples import write_safetensors
random.seed(1)
PERCENTS = 1, 5, 25, 50, 75, 95, 99
values = {f"{kind}.{count}": [random.randrange(low, low + 256) for _ in range(count)]
          for kind, low in (("U8", 0), ("I8", -128)) for count in (1023, 1024, 4095, 4096, 4097)}
write_safetensors("bytes.safetensors", {
    name: (name[:2], [len(v)], struct.pack(f"{len(v)}{'B' if name[0] == 'U' else 'b'}", *v))
    for name, v in values.items()})

def quantile(ordered, percent):
    place = (len(ordered) - 1) * percent / 100
    low, high = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
    return low * (1 - (place - int(place))) + high * (place - int(place))

p = subprocess.run([os.environ["HEFT"], "stats", "--quantiles", "--json", "bytes.safetensors"],
                   stdout=subprocess.PIPE, check=True)
for t in json.loads(p.stdout)["tensors"]:
    wanted = [quantile(sorted(values[t["name"]]), n) for n in PERCENTS]
    got = list(t["quantiles"].values())
    same = all(abs(a - b) < 1e-9 for a, b in zip(got, wanted, strict=True))
    print(t["name"], "ok" if same else f"{got} instead of {wanted}")
P
