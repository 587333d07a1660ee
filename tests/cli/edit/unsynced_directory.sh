# The last step fails: the edit has happened, and only a power cut may undo it.
$PYTHON - <<'P'
import os, shutil, subprocess, sys
import traced
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

def is_edited(path):
    return '"MIT' in subprocess.run([traced.HEFT, "info", "--json", path], stdout=subprocess.PIPE, text=True,
                                    check=True).stdout

subprocess.run([traced.HEFT, "convert", "small.safetensors", "small.zt"], check=True)
# in place: the journal, its name, the file, the journal's end; in a new file: that file, its name
for model, calls in (("small.zt", 4), ("small.safetensors", 2)):
    for when in range(1, calls + 1):
        shutil.copy(model, "model")
        code, err = traced.run([f"inject=fsync:error=EIO:when={when}"], "edit", "--set", "x=MIT", "model")
        print(model, when, code, err, is_edited("model"), [n for n in os.listdir(".") if "heft" in n])
P
