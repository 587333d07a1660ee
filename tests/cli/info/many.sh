# Many keys, long values, and an archive of many members: info shows the beginning and the sums.
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("many.safetensors", {"w%d" % i: ("F32", [1], f32(i)) for i in range(30)},
                  {"key%02d" % i: "v" * (i * 10) for i in range(60)})'
$HEFT info many.safetensors | grep -A60 '^Metadata' | tail -n 6
$HEFT info -v many.safetensors | grep -c 'key'
$HEFT convert -q many.safetensors many.npz 2> none
$HEFT info many.npz | grep -A5 '^Checksums'
$PYTHON - <<'P'
import os, terminal
text, code = terminal.run([os.environ["HEFT"], "info", "many.safetensors"], 80)
print(code, [line for line in text.splitlines() if len(line) > 80])
P
