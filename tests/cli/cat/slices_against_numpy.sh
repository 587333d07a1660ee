$PYTHON -c 'import numpy' 2> /dev/null || { echo "no numpy"; exit 77; }
$PYTHON - <<'P'
import io, os, subprocess
import numpy as np
from samples import write_safetensors
heft = os.environ["HEFT"]

def run(*words):
    return subprocess.run([heft, *words], capture_output=True)

rng = np.random.default_rng(7)
arrays = {"a": rng.standard_normal((5, 7, 11)).astype("f4"), "s": np.array(3.5, "f8"),
          "v": np.arange(9000, dtype="i8"), "e": np.zeros((0, 3), "f4")}
names = {"float32": "F32", "float64": "F64", "int64": "I64"}
write_safetensors("n.safetensors", {k: (names[str(a.dtype)], list(a.shape), a.tobytes()) for k, a in arrays.items()})
files = ["n.safetensors"]
if not run("convert", "--compress", "zstd", "--digest", "crc32c", "n.safetensors", "z.zt").returncode:
    files.append("z.zt")
run("convert", "--format-version", "2", "--drop", "[sve]", "--cast", "*=f4_e2m1", "n.safetensors", "packed.zt")
whole = np.load(io.BytesIO(run("cat", "--npy", "--cast", "f32", "packed.zt", "a").stdout))

def bound(size):
    return "" if rng.random() < .3 else str(int(rng.integers(-size - 3, size + 4)))

def axis(size):
    if rng.random() < .25 and size:
        return str(int(rng.integers(-size, size)))
    step = int(rng.choice([-5, -3, -2, -1, 1, 2, 3, 7]))
    return ":".join([bound(size), bound(size), str(step)]) if rng.random() < .7 else bound(size) + ":" + bound(size)

def judge(path, name, a, text, *words):
    want = eval("a[%s]" % text)
    got = run("cat", "--npy", path, "%s[%s]" % (name, text), *words)
    array = np.load(io.BytesIO(got.stdout)) if not got.returncode else None
    if array is None or array.shape != want.shape or array.tobytes() != np.ascontiguousarray(want).tobytes():
        print(path, name, text, got.stderr, "want", want.shape, want)
    got = run("show", path, "%s[%s]" % (name, text), *words)
    if want.size and got.stdout.decode() != str(want) + "\n" and want.ndim:
        print("show", path, name, text, "want", want, "got", got.stdout.decode(), got.stderr)

for i in range(120):
    name = ["a", "v", "e"][i % 3] if i % 10 else "a"
    a = arrays[name]
    axes = [axis(n) for n in a.shape[:int(rng.integers(1, a.ndim + 1))]]
    if rng.random() < .3:
        axes = ["..."] + [axis(n) for n in a.shape[a.ndim - len(axes):]]
    for path in files:
        judge(path, name, a, ",".join(axes))
    if name == "a":
        judge("packed.zt", "a", whole, ",".join(axes), "--cast", "f32")
judge("n.safetensors", "s", arrays["s"], "...")
for word in "a[5]", "a[-6]", "a[0,0,0,0]", "a[::0]", "a[x]", "a[0", "a[0]]", "a[1 2]", "a[9223372036854775808]", "a[...,...]", "none[0]", "s[0]":
    print(word, run("cat", "n.safetensors", word).returncode, run("cat", "n.safetensors", word).stderr.decode().strip())
want = arrays["a"].astype("f2")
assert run("cat", "n.safetensors", "a", "--cast", "f16").stdout == want.tobytes()
P
