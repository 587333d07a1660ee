$PYTHON - <<'P'
import os, signal, subprocess
from samples import write_safetensors
write_safetensors("big.safetensors", {"x": ("U8", [20000000], bytes(20000000))})
os.mkfifo("p.mag")
tool = subprocess.Popen([os.environ["HEFT"], "convert", "big.safetensors", "p.mag"])
with open("p.mag", "rb", buffering=0) as reader:
    reader.read(1)  # it is writing now, and waits for us
    tool.send_signal(signal.SIGTERM)
    got = 1
    while piece := reader.read(65536):
        got += len(piece)
print(tool.wait(), got < 20000000)
P
ls -A | grep tmp || echo nothing is left
