# What a killed program left under a temporary name is removed by the next command that writes there, unless somebody is
# writing it; other files of similar names are left alone.
$PYTHON - <<'P'
import fcntl, os, sys
import traced
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

def hidden(folder="."):
    return [n.partition(".heft-new")[1] or n for n in sorted(os.listdir(folder)) if n.startswith(".")]

def leave(folder="."):
    code, _ = traced.run([traced.NAMED, "inject=fsync:signal=KILL:when=1"], "convert", "--force", "small.safetensors",
                         folder + "/killed.mag")
    print(code, hidden(folder), end=" -> ")

def done(folder="."):
    print(hidden(folder))

os.mkdir("shards")
for args in (["convert", "small.safetensors", "a.mag"], ["convert", "--force", "small.safetensors", "a.mag"],
             ["merge", "small.safetensors", "b.mag"], ["edit", "--set", "k=v", "two.safetensors"],
             ["edit", "--set", "k=" + 5000 * "v", "two.safetensors"]):
    leave()
    os.spawnv(os.P_WAIT, traced.HEFT, [traced.HEFT, *args])
    done()
leave("shards")
os.spawnv(os.P_WAIT, traced.HEFT, [traced.HEFT, "split", "--count", "1", "small.safetensors", "shards"])
done("shards")
leave()
os.spawnv(os.P_WAIT, traced.HEFT, [traced.HEFT, "convert", "--dry-run", "small.safetensors", "c.mag"])
done()

written = [n for n in os.listdir(".") if n.endswith(".heft-new")][0]
with open(written) as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    print("locked", end=" -> ")
    os.spawnv(os.P_WAIT, traced.HEFT, [traced.HEFT, "convert", "small.safetensors", "c.mag"])
    done()

for name in (".c.mag.0123abcd.tmp", ".d.mag.0123abcd.tmp", ".c.mag.0123ABCD.tmp", ".c.mag.tmp", ".c.mag.heft-new",
             ".12ab.heft-new", "c.mag.12ab.heft-new", ".c.mag.xyz.heft-new", ".c.mag.1a2b.heft-new~"):
    open(name, "w").close()
os.mkdir(".dir.1234.heft-new")
os.symlink("c.mag", ".link.1234.heft-new")
os.mkfifo(".fifo.1234.heft-new")
os.spawnv(os.P_WAIT, traced.HEFT, [traced.HEFT, "convert", "--force", "small.safetensors", "c.mag"])
print("\n".join(sorted(n for n in os.listdir(".") if "heft-new" in n or n.endswith(".tmp"))))
P
