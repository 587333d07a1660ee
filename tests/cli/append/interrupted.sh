# Stopped while it reads: the file is as it was, and nothing is left.
$HEFT convert small.safetensors s.zt; cp s.zt t.zt
$PYTHON - <<'P'
import os, random, signal, subprocess, time
from samples import write_safetensors
write_safetensors("big.safetensors", {"x": ("U8", [20_000_000], random.Random(1).randbytes(20_000_000))})
tool = subprocess.Popen([os.environ["HEFT"], "append", "--compress", "zstd:19", "-j1", "s.zt", "big.safetensors"])
time.sleep(0.3)
tool.send_signal(signal.SIGTERM)
print(tool.wait())
P
cmp s.zt t.zt && echo untouched
ls -A | grep heft || echo nothing is left
