"""check_blend.py HEFT: judge `heft blend` by numpy, bit for bit.

The formulas of docs/blend.md are written here in numpy, in f32, with the same order of sums; models
are in several formats, and settings come from options, JSON and YAML. TAP on stdout."""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import tap  # noqa: E402

HEFT = os.path.abspath(sys.argv[1])
f32, f64, u64 = np.float32, np.float64, np.uint64
NAMES = ["model.embed.weight", "model.layers.0.self_attn.w", "model.layers.1.mlp.w",
         "model.layers.2.mlp.w", "model.norm.weight", "lm_head.weight"]
SHAPES = [(300, 41), (70, 33), (64, 70), (64, 70), (70,), (300, 41)]


# ---- files: safetensors written here, other formats by Heft ----

def save(path, tensors):
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64", "uint16": "BF16"}
    at, head, data = 0, {}, b""
    for name, x in tensors.items():
        head[name] = {"dtype": kinds[str(x.dtype)], "shape": list(x.shape),
                      "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
        data += x.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])
    kinds = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "BF16": "<u2"}
    return {name: np.frombuffer(data, kinds[e["dtype"]], math.prod(e["shape"]),
                                8 + size + e["data_offsets"][0]).reshape(e["shape"])
            for name, e in head.items() if name != "__metadata__"}


def to_bf16(x):
    """Round to nearest, ties to even."""
    bits = x.view(np.uint32).astype(u64)
    return ((bits + 0x7FFF + (bits >> u64(16) & u64(1))) >> u64(16)).astype(np.uint16)


# ---- formulas ----

def weighted(xs, ws):
    total = f32(ws[0]) * xs[0]
    for x, w in zip(xs[1:], ws[1:]):
        total = total + f32(w) * x
    return total


def sum_of(ws):
    total = f32(ws[0])
    for w in ws[1:]:
        total = f32(total + f32(w))
    return total


def linear(xs, ws, normalize=True):
    total = weighted(xs, ws)
    return total / sum_of(ws) if normalize else total


def dot(x, y):
    """Pieces of 4096; eight lanes in each, which are added in order."""
    p = x.ravel().astype(f64) * y.ravel().astype(f64)
    total = f64(0)
    for at in range(0, p.size, 4096):
        piece = p[at:at + 4096]
        lanes = np.zeros(8)
        whole = piece[:piece.size // 8 * 8].reshape(-1, 8)
        if len(whole):
            lanes = np.add.accumulate(np.vstack([np.zeros((1, 8)), whole]), axis=0)[-1]
        for j, v in enumerate(piece[whole.size:]):
            lanes[j] += v
        s = f64(0)
        for lane in lanes:
            s += lane
        total += s
    return total


def slerp(base, x, t):
    cosine = dot(base, x) / (math.sqrt(dot(base, base)) * math.sqrt(dot(x, x)))
    if abs(cosine) > 0.9995:
        a, b = 1 - t, t
    else:
        angle = math.acos(cosine)
        a, b = (math.sin(v * angle) / math.sin(angle) for v in (1 - t, t))
    return f32(a) * base + f32(b) * x


def trim(d, density):
    """Keep the largest magnitudes, the first of equal ones."""
    k = int(density * d.size)
    flat = d.ravel()
    keep = np.zeros(flat.size, bool)
    keep[np.argsort(-np.abs(flat), kind="stable")[:k]] = True
    return np.where(keep, flat, f32(0)).reshape(d.shape)


M64 = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15


def mix(z):
    z = np.asarray(z, u64)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
    return z ^ (z >> u64(31))


def drop(d, density, seed, name, model, rescale=True):
    h = 0xCBF29CE484222325
    for c in name.encode():
        h = ((h ^ c) * 0x100000001B3) & M64
    key = mix(int(mix((seed + STEP) & M64)) ^ int(mix((h + (model + 1) * STEP) & M64)))
    with np.errstate(over="ignore"):
        r = mix(key + (np.arange(d.size, dtype=u64) + u64(1)) * u64(STEP))
    keep = ((r >> u64(11)).astype(f64) * 2.0 ** -53 < density).reshape(d.shape)
    return np.where(keep, d / f32(density) if rescale else d, f32(0))


def deltas(base, xs, ws, change, elects, normalize, factor=1.0):
    ds = [f32(w) * change(i, x - base) for i, (x, w) in enumerate(zip(xs, ws))]
    total = ds[0]
    for d in ds[1:]:
        total = total + d
    if elects:
        positive = total >= 0
        total, weight = np.zeros_like(base), np.zeros_like(base)
        for d, w in zip(ds, ws):
            agrees = (d != 0) & ((d > 0) == positive)
            total = np.where(agrees, total + d, total)
            weight = np.where(agrees, weight + f32(w), weight)
        if normalize:
            total = total / np.where(np.abs(weight) < f32(1e-8), f32(1), weight)
    elif normalize:
        total = total / sum_of(ws)
    return base + f32(factor) * total


def plain(i, d):
    return d


# ---- the run ----

class Blend:
    def __init__(self, folder):
        self.folder = folder
        r = np.random.default_rng(7)
        self.models = {}
        base = {n: r.standard_normal(s).astype(f32) for n, s in zip(NAMES, SHAPES)}
        base["lm_head.weight"] = base["model.embed.weight"].copy()
        self.models["base"] = base
        for name in "abc":
            # small integers, so that magnitudes are equal often
            self.models[name] = {n: x + (r.integers(-3, 4, x.shape) / 8).astype(f32)
                                 for n, x in base.items()}
        for name, tensors in self.models.items():
            save(folder / f"{name}.safetensors", {**tensors, "ids": np.arange(9)})
        self.ids = np.arange(9)
        for to in ("b.gguf", "c.npz", "a.zt"):
            source = to.split(".")[0] + ".safetensors"
            self.heft("convert", "--keep", "model.*", "--keep", "lm*", "--keep", "ids",
                      self.folder / source, self.folder / to)

    def heft(self, *args):
        p = subprocess.run([HEFT, *map(str, args)], capture_output=True, cwd=self.folder)
        assert p.returncode == 0, (args, p.stderr.decode())
        return p

    def __call__(self, *args):
        self.heft("blend", "--force", *args, "out.safetensors")
        out = load(self.folder / "out.safetensors")
        assert np.array_equal(out.pop("ids"), self.ids)
        return out

    def of(self, models, name):
        return [self.models[m][name] for m in models]


def compare(got, expected):
    for name, x in expected.items():
        same = np.array_equal(got[name].view(np.uint8), np.ascontiguousarray(x).view(np.uint8))
        if not same:
            wrong = np.argwhere(got[name] != x)
            raise AssertionError(f"{name}: {len(wrong)} elements differ, first at {wrong[:1]}: "
                                 f"{got[name].ravel()[:3]} {x.ravel()[:3]}")
    assert sorted(got) == sorted(expected)


def every(fn):
    return {n: fn(n) for n in NAMES}


def linear_sums(b):
    xs = lambda n: b.of("abc", n)
    files = ["a.safetensors", "b.gguf", "c.npz"]
    compare(b("--method", "linear", *files), every(lambda n: linear(xs(n), [1, 1, 1])))
    compare(b("--method", "linear", "--weight", "0.5,0.3,0.1", *files),
            every(lambda n: linear(xs(n), [.5, .3, .1])))
    compare(b("--method", "linear", "--weight", "0.5,0.3,-0.1", "--normalize", "false", *files),
            every(lambda n: linear(xs(n), [.5, .3, -.1], False)))
    w = lambda n: [2, 1, 1] if "mlp" in n else [1, 3, 5]
    compare(b("--method", "linear", "--weight", "mlp=2,1,1", "--weight", "1,3,5", *files),
            every(lambda n: linear(xs(n), w(n))))


def types_of_the_result(b):
    x = {n: to_bf16(v) for n, v in b.models["a"].items()}
    y = {n: v.astype(np.float16) for n, v in b.models["b"].items()}
    save(b.folder / "bf16.safetensors", {**x, "ids": b.ids})
    save(b.folder / "f16.safetensors", {**y, "ids": b.ids})
    wide = lambda v: (v.astype(np.uint32) << 16).view(f32)
    mean = every(lambda n: linear([wide(x[n]), y[n].astype(f32)], [1, 2]))
    args = ["--method", "linear", "--weight", "1,2", "bf16.safetensors", "f16.safetensors"]
    compare(b(*args), {n: to_bf16(v) for n, v in mean.items()})
    compare(b("--dtype", "f16", *args), {n: v.astype(np.float16) for n, v in mean.items()})
    compare(b("--dtype", "f32", *args), mean)


def spheres(b):
    for t in (0, 0.25, 0.5, 1):
        compare(b("--method", "slerp", "--base", "base.safetensors", "--t", t, "b.gguf"),
                every(lambda n: slerp(b.models["base"][n], b.models["b"][n], t)))
    r = np.random.default_rng(3)
    far = {n: r.standard_normal(s).astype(f32) for n, s in zip(NAMES, SHAPES)}
    save(b.folder / "far.safetensors", {**far, "ids": b.ids})
    for t in (0.1, 1 / 8, 0.9):
        compare(b("--method", "slerp", "--base", "base.safetensors", "--t", t, "far.safetensors",
                  "--untie"),
                every(lambda n: slerp(b.models["base"][n], far[n], t)))
    zero = {n: np.zeros_like(x) for n, x in far.items()}
    save(b.folder / "zero.safetensors", {**zero, "ids": b.ids})
    compare(b("--method", "slerp", "--base", "base.safetensors", "--t", "0.25", "zero.safetensors"),
            every(lambda n: f32(.75) * b.models["base"][n] + f32(.25) * zero[n]))


def differences(b):
    base = b.models["base"]
    files = ["--base", "base.safetensors", "a.zt", "b.gguf", "c.npz"]
    xs = lambda n: b.of("abc", n)
    ws = [.5, 1.25, -.75]
    compare(b("--method", "task_arithmetic", "--weight", "0.5,1.25,-0.75", *files),
            every(lambda n: deltas(base[n], xs(n), ws, plain, False, False)))
    compare(b("--method", "task_arithmetic", "--weight", "0.5,1.25,-0.75", "--normalize", "true",
              "--factor", "0.7", *files),
            every(lambda n: deltas(base[n], xs(n), ws, plain, False, True, .7)))


def largest_differences(b):
    base = b.models["base"]
    files = ["--base", "base.safetensors", "a.zt", "b.gguf", "c.npz"]
    xs = lambda n: b.of("abc", n)
    for d in (1, 0.5, 0.2, 0.031, 0):
        compare(b("--method", "ties", "--weight", "1,2,0.5", "--density", d, *files),
                every(lambda n: deltas(base[n], xs(n), [1, 2, .5], lambda i, v: trim(v, d), True,
                                       True)))
    densities = [.3, .6, .9]
    compare(b("--method", "ties", "--density", "0.3,0.6,0.9", "--normalize", "false", "--factor",
              "1.5", *files),
            every(lambda n: deltas(base[n], xs(n), [1, 1, 1],
                                   lambda i, v: trim(v, densities[i]), True, False, 1.5)))


def random_differences(b):
    base = b.models["base"]
    files = ["--base", "base.safetensors", "a.zt", "b.gguf", "c.npz"]
    xs = lambda n: b.of("abc", n)
    for method, seed in (("dare_linear", 0), ("dare_ties", 12345678901234567890)):
        for d in (0.5, 0.1):
            change = lambda n: lambda i, v: drop(v, d, seed, n, i)
            compare(b("--method", method, "--density", d, "--seed", seed, "--weight", "1,0.5,0.25",
                      *files),
                    every(lambda n: deltas(base[n], xs(n), [1, .5, .25], change(n),
                                           method == "dare_ties", False)))


def settings_in_yaml_and_json(b):
    text = """
# like those of mergekit
merge_method: slerp
base_model: org/base
slices:
  - sources:
      - model: org/base
        layer_range: [0, 3]
      - model: "org/b"
        layer_range: [0, 3]
parameters:
  t:
    - filter: self_attn
      value: [0, 0.5, 1]
    - filter: "*mlp*"
      value: [1, .5, 0.25, 0]
    - value: 0.5 # all others
dtype: float32
tokenizer_source: base
"""
    (b.folder / "merge.yaml").write_text(text)
    layer = {"model.layers.0.self_attn.w": 0.0, "model.layers.1.mlp.w": (.5 + .25) / 2,
             "model.layers.2.mlp.w": 0.0}
    expected = every(lambda n: slerp(b.models["base"][n], b.models["b"][n], layer.get(n, .5)))
    compare(b("--settings", "merge.yaml", "base.safetensors", "b.gguf"), expected)
    settings = {"method": "ties", "base_model": "base.safetensors", "models": [
        {"model": "a.zt", "parameters": {"weight": 0.5, "density": [
            {"filter": "mlp", "value": 0.25}, {"value": 0.5}]}},
        {"model": "b.gguf", "parameters": {"weight": 2e0}}], "parameters": {"lambda": 0.5}}
    (b.folder / "merge.json").write_text(json.dumps(settings))
    density = lambda n: .25 if "mlp" in n else .5
    compare(b("--settings", "merge.json", "base.safetensors", "a.zt", "b.gguf"),
            every(lambda n: deltas(b.models["base"][n], b.of("ab", n), [.5, 2],
                                   lambda i, v: v if i else trim(v, density(n)), True, True, .5)))


def settings_as_they_are_published(b):
    """The type that is stored wins over that of the computation, wherever they are; keys may lack
    values."""
    mean = every(lambda n: linear([b.models["base"][n], b.models["a"][n]], [1, .5]))
    for first, second in ("dtype: bfloat16", "out_dtype: float32"), ("out_dtype: float32",
                                                                    "dtype: bfloat16"):
        (b.folder / "published.yaml").write_text(f"""
{first}
models:
  - model: base.safetensors
    parameters: {{weight: 1.0}}
  - model: a.zt
    parameters: {{weight: 5e-1}}
base_model:
parameters:
merge_method: linear
{second}
""")
        compare(b("--settings", "published.yaml", "base.safetensors", "a.zt"), mean)


def missing_and_tied_tensors(b):
    part = dict(b.models["b"])
    del part["lm_head.weight"]
    save(b.folder / "part.safetensors", {**part, "ids": b.ids})
    args = ["--method", "linear", "a.safetensors", "part.safetensors", "c.npz"]
    xs = lambda n: b.of("abc", n)
    expected = every(lambda n: linear(xs(n), [1, 1, 1]))
    compare(b("--missing", "base", *args),
            {**expected, "lm_head.weight": b.models["a"]["lm_head.weight"]})
    compare(b("--missing", "present", *args),
            {**expected, "lm_head.weight": linear(b.of("ac", "lm_head.weight"), [1, 1])})
    tied = [b.models["a"]["lm_head.weight"], b.models["b"]["model.embed.weight"],
            b.models["c"]["lm_head.weight"]]
    compare(b("--tied", "lm_head.weight=model.embed.weight", *args),
            {**expected, "lm_head.weight": linear(tied, [1, 1, 1])})


def any_number_of_threads(b):
    args = ["--method", "dare_ties", "--density", "0.3", "--base", "base.safetensors", "a.zt",
            "b.gguf"]
    whole = b("-j1", *args)
    compare(b("-j3", *args), whole)


CHECKS = {
    "weighted sums are those of numpy": linear_sums,
    "the result is rounded once to its type": types_of_the_result,
    "spherical interpolation is that of numpy": spheres,
    "sums of differences are those of numpy": differences,
    "the largest differences are those of numpy": largest_differences,
    "random differences are those of the documented generator": random_differences,
    "settings in YAML and JSON": settings_in_yaml_and_json,
    "settings as they are published": settings_as_they_are_published,
    "missing and tied tensors are what the options say": missing_and_tied_tensors,
    "any number of threads gives the same bytes": any_number_of_threads,
}

def complaints_of(check, blend):
    try:
        check(blend)
    except AssertionError as e:
        return [e]
    return []


def main():
    with tempfile.TemporaryDirectory() as scratch:
        blend = Blend(pathlib.Path(scratch))
        return tap.report((title, complaints_of(check, blend)) for title, check in CHECKS.items())


if __name__ == "__main__":
    sys.exit(main())
