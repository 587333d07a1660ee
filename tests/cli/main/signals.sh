# Commands that write clean up, say so, and die of the signal; what nohup ignores stays ignored.
$PYTHON - <<'P'
import os, signal, sys
import traced
from samples import write_safetensors
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

write_safetensors("in.safetensors", {f"t{i}": ("F32", [1000], bytes(4000)) for i in range(50)})
open("old.mag", "w").close()
before = sorted(os.listdir("."))

def check(name, injected, *args, ignored=None, path=None):
    code, err = traced.run(injected, *args, path=path, preexec_fn=ignored and (lambda: signal.signal(ignored, signal.SIG_IGN)))
    made = [n for n in sorted(os.listdir(".")) if n not in before]
    print(f"{name}: {signal.Signals(-code).name if code < 0 else code} {err!r} {made}")

for name in ("INT", "TERM", "HUP", "QUIT", "XCPU"):
    at_write = f"inject=pwrite64:signal={name}:when=1"
    check(f"{name}, no name yet", [at_write], "convert", "in.safetensors", "new.mag")
    check(f"{name}, a temporary name", [traced.NAMED, at_write], "convert", "in.safetensors", "new.mag")
at_write = "inject=pwrite64:signal=TERM:when=1"
check("replacing", [traced.NAMED, at_write], "convert", "--force", "in.safetensors", "old.mag")
check("merge", [traced.NAMED, at_write], "merge", "in.safetensors", "new.mag")
check("split", [traced.NAMED, at_write], "split", "--count", "3", "in.safetensors", "shards")
check("edit in a new file", ["inject=copy_file_range:signal=TERM:when=1"], "edit", "--set", "k=" + 5000 * "v", "in.safetensors")
check("a second signal kills", ["inject=pwrite64:signal=HUP:when=1+"], "convert", "-j1", "in.safetensors", "new.mag")
check("before there is an output", ["inject=openat:signal=HUP:when=1"], "convert",
      os.path.abspath("in.safetensors"), "new.mag", path="in.safetensors")
check("into a pipe", ["inject=write:signal=TERM:when=1"], "convert", "--to", "mag", "in.safetensors", "-")
check("a command that only reads", ["inject=write:signal=HUP:when=1"], "ls", "in.safetensors")
check("too late", ["inject=fsync:signal=HUP:when=2"], "convert", "in.safetensors", "new.mag")
os.unlink("new.mag")
check("ignored", ["inject=pwrite64:signal=HUP:when=1+"], "convert", "in.safetensors", "new.mag", ignored=signal.SIGHUP)
P
