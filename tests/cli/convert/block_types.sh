# Every block type of GGUF becomes numbers, in every command, as an independent decoder has them.
PYTHONPATH=$CASES/../py:$CASES $PYTHON - <<'P'
import json, math, os, random, struct, subprocess
import gen_gguf, ggml_blocks
heft = os.environ["HEFT"]
def run(*args):
    return subprocess.run([heft, *args], capture_output=True, check=True).stdout
def f16(x):
    try:
        return struct.pack("<e", x)
    except OverflowError:
        return struct.pack("<e", math.copysign(math.inf, x))
def bf16(x):
    bits, = struct.unpack("<I", struct.pack("<f", x))
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)
def f32(x):
    return struct.pack("<f", x)
rng, tensors, values = random.Random(1), [], {}
for name, (_, elements, _) in ggml_blocks.BLOCKS.items():
    raw = ggml_blocks.draw(name, 2 * elements, rng)
    tensors.append((name, name, (2, elements), raw))
    values[name] = ggml_blocks.decode(name, raw)
open("all.gguf", "wb").write(gen_gguf.File(tensors).bytes())
stats = {t["name"]: t for t in json.loads(run("stats", "--json", "all.gguf"))["tensors"]}
for to, pack in (("f32", f32), ("f16", f16), ("bf16", bf16)):
    run("convert", "-q", "--cast", to, "all.gguf", to + ".safetensors")
    for name, numbers in values.items():
        want = b"".join(map(pack, numbers))
        width, columns = len(want) // len(numbers), len(numbers) // 2
        row = want[width * (columns + 3):width * (columns + 21)]
        assert run("cat", to + ".safetensors", name) == want, (to, name)
        assert run("cat", "--cast", to, "all.gguf", name) == want, (to, name)
        assert run("cat", "--cast", to, "all.gguf", name + "[1,3:21]") == row, (to, name)
for name, numbers in values.items():
    shown = json.loads(run("show", "--json", "all.gguf", name))["values"]
    assert [f32(x) for x in shown] == [f32(x) for x in numbers], name
    assert (stats[name]["min"], stats[name]["max"]) == (min(numbers), max(numbers)), name
print(len(values), "types")
P
$HEFT diff --ignore-dtype all.gguf f32.safetensors | tail -n 1
