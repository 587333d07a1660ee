# Output that is larger than a pipe for a pager that quits early ends without a message. A signal
# that the command was started to ignore stays ignored while the pager runs.
$PYTHON - <<'P'
import os
import terminal
from samples import write_safetensors
write_safetensors("many.safetensors",
                  {f"{'layer.' * 20}{i}": ("U8", [1], b"x") for i in range(4000)})
os.environ["NO_COLOR"] = "1"
os.environ["HEFT_PAGER"] = "head -n 1"
text, code = terminal.run([os.environ["HEFT"], "ls", "--raw", "many.safetensors"], pager=None)
print("a pager that quits early", code, len(text.splitlines()))
os.environ["HEFT_PAGER"] = "read -r line; kill -HUP $PPID; cat > shown; wc -l < shown"
text, code = terminal.run(["sh", "-c", 'trap "" HUP; exec "$HEFT" ls --raw many.safetensors'],
                          pager=None)
print("ignored", code, int(text))
os.environ["HEFT_PAGER"] = "read -r line; kill -HUP $PPID; cat > shown; wc -l < shown"
text, code = terminal.run(["sh", "-c", 'exec "$HEFT" ls --raw many.safetensors'], pager=None)
print("not ignored", code)
P
