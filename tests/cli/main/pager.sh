# Long output goes through a pager if stdout is a terminal.
$PYTHON - <<'P'
import os, subprocess
import terminal
heft = os.environ["HEFT"]

def show(title, words, pager="sed s/^/paged:/", name="HEFT_PAGER"):
    for key in ("HEFT_PAGER", "PAGER"):
        os.environ.pop(key, None)
    if pager is not None:
        os.environ[name] = pager
    text, code = terminal.run([heft, *words], pager=None)
    print(title, code, text.splitlines()[:2], len(text.splitlines()))

os.environ["NO_COLOR"] = "1"
show("HEFT_PAGER", ["ls", "small.safetensors"])
show("PAGER", ["info", "small.safetensors"], name="PAGER")
show("cat", ["ls", "small.safetensors"], "cat")
show("empty", ["ls", "small.safetensors"], "")
show("--no-pager", ["--no-pager", "ls", "small.safetensors"])
show("a pager that quits early", ["ls", "large.safetensors"], "head -n 1")
show("a pager that reads nothing", ["ls", "large.safetensors"], "true")
show("exit status 1", ["diff", "small.safetensors", "two.safetensors"])
show("exit status 2", ["ls"])
show("not for verify", ["verify", "small.safetensors"])
os.environ["HEFT_PAGER"] = "read -r line; kill -TERM $PPID; cat > shown; echo ended > pager"
print("a signal", terminal.run([heft, "ls", "small.safetensors"])[1], open("pager").read().strip())
path, os.environ["PATH"] = os.environ["PATH"], "/nowhere"
show("less is not installed", ["ls", "small.safetensors"], None)
os.mkdir("bin")
with open("bin/less", "w") as f:
    f.write("#!/bin/sh\nwhile read -r line; do echo \"less:$line\"; done\n")
os.chmod("bin/less", 0o755)
os.environ["PATH"] = "/nowhere:" + os.path.abspath("bin")
show("less", ["ls", "small.safetensors"], None)
os.environ["PATH"] = path
os.environ["NO_COLOR"] = ""
os.environ["TERM"] = "xterm"
show("colours", ["ls", "small.safetensors"])
os.environ["HEFT_PAGER"] = "sed s/^/paged:/"
p = subprocess.run([heft, "ls", "small.safetensors"], capture_output=True, text=True)
print("a pipe", p.returncode, p.stdout.splitlines()[:1])
P
