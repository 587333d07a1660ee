$PYTHON -c 'import numpy' 2> /dev/null || { echo "no numpy"; exit 77; }
$PYTHON - <<'P'
import os, subprocess
import numpy as np
from samples import write_safetensors
names = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8", "bool": "BOOL"}
rng = np.random.default_rng(1)
arrays = {}
for i in range(60):
    t = list(names)[i % len(names)]
    shape = tuple(int(x) for x in rng.choice([1, 2, 3, 7, 12, 40], size=rng.integers(0, 4)))
    a = rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 9)
    if i % 5 == 0:
        a = np.where(rng.random(shape) < 0.2, np.nan, a)
    if t[0] in "iub":
        a = np.nan_to_num(a) % 200
    with np.errstate(over="ignore"):
        arrays["t%d" % i] = np.asarray(a).astype(t)
write_safetensors("n.safetensors", {k: (names[str(a.dtype)], list(a.shape), a.tobytes()) for k, a in arrays.items()})
for k, a in arrays.items():
    got = subprocess.run([os.environ["HEFT"], "show", "n.safetensors", k], capture_output=True, text=True).stdout
    if got != str(a) + "\n":
        print("want", a, "got", got, sep="\n")
P
