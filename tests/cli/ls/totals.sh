$HEFT ls --totals two.safetensors
$HEFT ls --totals --limit 1 two.safetensors
$HEFT ls --totals --bytes large.safetensors grid
$HEFT ls --totals none.safetensors
$PYTHON "$CASES/terminal.py" $HEFT ls --color never two.safetensors
$PYTHON - <<'P'
import subprocess, os
from samples import write_safetensors
for n in (999, 1000, 9994, 9996, 99940, 99960, 999400, 999600, 1780000000):
    header = {"w": {"dtype": "F4", "shape": [n - n % 2, 1], "data_offsets": [0, n // 2]}}
    import json, struct
    text = json.dumps(header).encode()
    with open("n.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + n // 2)
    print(subprocess.run([os.environ["HEFT"], "ls", "--totals", "n.safetensors"], capture_output=True, text=True).stdout.splitlines()[-1])
P
