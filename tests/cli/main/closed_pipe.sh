# Whoever reads has had enough: nobody needs to be told, but the exit status tells.
$PYTHON - <<'P'
import os, subprocess
model = "two.safetensors"
for args in (["--help"], ["--version"], ["help", "ls"], ["ls", model], ["ls", "--json", model], ["info", model],
             ["cat", model, "ids"], ["cat", "--npy", model, "ids"], ["show", model, "ids"], ["verify", model],
             ["verify", "--json", model], ["diff", model, "small.safetensors"], ["hash", model], ["ids", model],
             ["stats", model], ["formats"], ["convert", "--to", "mag", "small.safetensors", "-"],
             ["convert", "--dry-run", "small.safetensors", "x.mag"],
             ["convert", "--to", "mag", "small.safetensors", "/dev/stdout"],
             ["edit", "--dry-run", "--set", "k=v", model]):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([os.environ["HEFT"], *args], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    print(*args, done.returncode, done.stderr.strip() or "silent")
P
