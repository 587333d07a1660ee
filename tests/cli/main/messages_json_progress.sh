# Progress is a message per drawing of the bar, though stderr is no terminal; a signal is an error.
$PYTHON - <<'P'
import json, os, signal, sys
import traced
from samples import write_safetensors
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

write_safetensors("in.safetensors", {"x": ("U8", [5 << 20], bytes(5 << 20))})
JSON = ("convert", "-j1", "--messages", "json", os.path.abspath("in.safetensors"))
SLOW = "inject=pwrite64:delay_enter=110000:when=1..9"

code, err = traced.run([SLOW], *JSON, "out.mag")
messages = [json.loads(line) for line in err.splitlines()]
steps = [m for m in messages if m["kind"] == "progress"]
done = [m["done"] for m in steps]
print(code, bool(steps), done == sorted(done), {m["total"] for m in steps}, sorted(steps[0]),
      messages[-1]["kind"])

code, err = traced.run([SLOW], "convert", "-j1", "in.safetensors", "text.mag")
print(code, repr(err))

for name, rule, path in (("held", "inject=pwrite64:signal=TERM:when=1", None),
                         ("announced", "inject=openat:signal=TERM:when=1", "in.safetensors")):
    code, err = traced.run([rule], *JSON, name + ".mag", path=path)
    print(name, signal.Signals(-code).name, json.loads(err))
P
