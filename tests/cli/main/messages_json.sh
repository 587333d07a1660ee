# With --messages json each line on stderr is an object with the same members, wrong usage included.
$PYTHON - <<'P'
import json, os, struct, subprocess
from samples import write_safetensors

MEMBERS = ["kind", "file", "text", "status", "rule", "tensor", "offset"]
HOSTILE = "b\u202e\n\"x\\"
write_safetensors("in.safetensors", {"w": ("F32", [4], bytes(16)), HOSTILE: ("BF16", [2], bytes(4)),
                                     "../s": ("F32", [], bytes(4))}, {"license": "MIT"})
write_safetensors("other.safetensors", {"v": ("F32", [4], bytes(16))}, {"license": "GPL"})
config = json.dumps({"vocab_size": 8, "context_length": 4, "embed_dim": 2, "num_layers": 1,
                     "num_heads": 1, "mlp_ratio": 4, "dropout": 0.5}).encode()
index = struct.pack("<II1s16xIQIBQQ", 1, 1, b"w", 1, 2, 0, 0, 256, 8)
front = b"GPTRSCHK" + struct.pack("<II", 2, len(config)) + config + struct.pack("<I", len(index)) + index
open("bare.gptrs", "wb").write(front.ljust(256, b"\0") + bytes(8))
open("broken.safetensors", "wb").write(open("in.safetensors", "rb").read()[:-1])

def run(*words):
    p = subprocess.run([os.environ["HEFT"], *words], capture_output=True, check=False)
    err = p.stderr.decode()
    print("$", *map(json.dumps, words), "->", p.returncode)
    for line in err.splitlines():
        m = json.loads(line)
        if m["kind"] not in ("result", "progress"):
            missing = [k for k in MEMBERS if k not in m]
            print(*["missing %s" % k for k in missing], end="")
        print({k: v for k, v in m.items() if v is not None})
    assert err.isprintable() or all(c.isprintable() for c in err.replace("\n", "")), err

JSON = ("--messages", "json")
run("ls", *JSON, "in.safetensors", "nothing*")
run("ls", *JSON, "missing.safetensors")
run("ls", *JSON, "bare.gptrs")
run("info", *JSON, "broken.safetensors")
run("show", *JSON, "in.safetensors", "none")
run("convert", *JSON, "in.safetensors", "out.mag")
run("convert", *JSON, "-v", "--allow-loss", "in.safetensors", "out.npz")
run("convert", *JSON, "in.safetensors", "out.npz")
run("convert", *JSON, "-n", "-f", "--cast", "bf16", "in.safetensors", "-", "--to", "mag")
run("convert", *JSON, "--share", "2/2", "in.safetensors", "out.zt")
run("split", *JSON, "--count", "2", "in.safetensors", "shards")
run("merge", *JSON, "shards", "other.safetensors", "one.zt")
run("merge", *JSON, "--strict", "shards", "other.safetensors", "two.zt")
run("append", *JSON, "one.zt", "other.safetensors", "--rename", "s/^/ema./")
run("edit", *JSON, "--set", "a=1", "one.zt")
run("edit", *JSON, "-v", "--set", "a=1", "one.zt")
run("edit", *JSON, "one.zt")
run("verify", *JSON, "--json", "missing.safetensors")
run("scan", *JSON, "missing.safetensors")
# Usage: the option counts even if it stands after the mistake, or before an unknown command's end.
run("convert", "--bogus", "in.safetensors", "out.zt", "--messages=json")
run("convert", *JSON)
run("bogus", *JSON)
run("ls", *JSON, "--color", "blue", "in.safetensors")
P
$HEFT ls --messages xml in.safetensors
