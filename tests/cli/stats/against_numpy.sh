$PYTHON -c 'import numpy' 2> /dev/null || { echo "no numpy"; exit 77; }
$PYTHON - <<'P'
import json, os, subprocess
import numpy as np
from samples import write_safetensors
names = {"float16": "F16", "float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8", "int16": "I16"}
rng = np.random.default_rng(3)
arrays = {}
for i in range(40):
    kind = list(names)[i % 5]
    shape = tuple(int(n) for n in rng.choice([1, 3, 17, 60, 300], size=rng.integers(1, 4)))[:3]
    a = np.round(rng.standard_normal(shape) * 40, int(rng.integers(0, 4)))
    a = np.where(rng.random(shape) < .3, 0, a)
    if kind[0] == "f" and i % 3 == 0:
        a = np.where(rng.random(shape) < .01, rng.choice([np.nan, np.inf, -np.inf]), a)
    arrays["t%d" % i] = (np.abs(a) if kind == "uint8" else a).astype(kind)
large = rng.standard_normal(100003)
arrays["large32"] = large.astype("float32")
arrays["large16"] = large.astype("float16")
arrays["large64"] = large * 1e100
arrays["large_int"] = (large * 1e6).astype("int64")
arrays["large_uint"] = rng.integers(0, 256, 70001).astype("uint8")
# So many elements of 16 bits that their values are counted.
many = rng.standard_normal(300007)
arrays["many16"] = many.astype("float16")
arrays["many16_bad"] = np.where(np.arange(many.size) > 299998, np.nan, many).astype("float16")
arrays["many16_bad"][299999::3] = np.inf
arrays["many_int"] = (many * 9000).astype("int16")
arrays["many32_bad"] = np.where(np.arange(many.size) == 270000, -np.inf, many).astype("float32")
arrays["many32_equal"] = np.full(300007, -0.25, "float32")
write_safetensors("n.safetensors", {k: (names[str(a.dtype)], list(a.shape), a.tobytes()) for k, a in arrays.items()})
p = subprocess.run([os.environ["HEFT"], "stats", "--json", "n.safetensors"], capture_output=True)
for t in json.loads(p.stdout)["tensors"]:
    a = arrays[t["name"]].astype("f8")
    bad = np.argwhere(~np.isfinite(a))
    finite = a[np.isfinite(a)]
    want = {"count": a.size, "zeros": int((a == 0).sum()), "nan": int(np.isnan(a).sum()),
            "inf": int(np.isinf(a).sum()), "sparsity": (a == 0).sum() / a.size,
            "first_not_finite": bad[0].tolist() if len(bad) else None}
    if finite.size:
        want.update(min=finite.min(), max=finite.max())
        scale = np.abs(finite).max() * 1e-12
        assert np.isclose(t["mean"], finite.mean(), rtol=1e-12, atol=scale), t
        assert np.isclose(t["std"], finite.std(), rtol=1e-12, atol=1e-12), t
        exact = not (a.size > 4096 and arrays[t["name"]].dtype.itemsize == 8)
        for percent, got in t["quantiles"].items():
            q = np.quantile(finite, int(percent) / 100)
            assert np.isclose(got, q, rtol=1e-12 if exact else 2e-6, atol=1e-12), (t, percent, q)
    if finite.size and finite.min() < finite.max():
        # A value that lies on an edge may count on either side: NumPy rounds the edges.
        edges = np.histogram_bin_edges(finite, 8)
        near = [(np.abs(finite - e) <= 1e-9 * (finite.max() - finite.min())).sum() for e in edges[1:-1]]
        below = np.cumsum(t["histogram"])[:-1]
        for got, edge, slack in zip(below, edges[1:], near):
            assert abs(int(got) - int((finite < edge).sum())) <= slack, (t, edge)
        assert sum(t["histogram"]) == finite.size
    for key, value in want.items():
        if t[key] != value:
            print(t["name"], key, "want", value, "got", t[key])
P
