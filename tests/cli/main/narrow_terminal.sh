# Tables fit on the terminal: names are elided, or rows are stacked, and numbers stay whole.
$PYTHON - <<'P'
import os, re, subprocess, unicodedata
import terminal
from samples import write_safetensors
heft = os.environ["HEFT"]
os.environ["PAGER"] = "cat"
names = ["model.decoder.layers.%d.self_attention.query_key_value.weight" % i for i in range(3)]
names += ["\u5bbd" * 40, "\u00e9" * 30, "short"]
write_safetensors("m.safetensors", {n: ("F32", [2, 3], bytes(24)) for n in names})

def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)

for words in (["ls"], ["ls", "-l"], ["ls", "--tree"], ["stats"], ["stats", "--quantiles"]):
    for columns in (40, 60, 80, 200, 300):
        text, code = terminal.run([heft, *words, "m.safetensors"], columns)
        lines = re.sub(r"\x1b\[\d*m", "", text).splitlines()
        wide = [line for line in lines if width(line) > columns and "\u5bbd" * 40 != line
                and line not in names]
        if code or wide:
            print(words, columns, code, wide)
        if columns == 60 and words == ["ls"]:
            print(*lines, sep="\n")
        if columns == 40 and words == ["ls"]:
            print(*lines[-4:], sep="\n")
deep = {".".join(["block"] * n) + ".weight": ("F32", [2], bytes(8)) for n in (1, 9, 30)}
write_safetensors("deep.safetensors", deep)
write_safetensors("other.safetensors", {n: ("F32", [2, 3], bytes(20) + b"\0\0\x80\x3f")
                                        for n in names})
for words in (["formats"], ["diff", "m.safetensors", "other.safetensors"],
              ["diff", "--tree", "m.safetensors", "other.safetensors"],
              ["stats", "m.safetensors"], ["ls", "--tree", "deep.safetensors"]):
    for columns in (50, 80, 120):
        text, code = terminal.run([heft, *words], columns)
        lines = re.sub(r"\x1b\[\d*m", "", text).splitlines()
        if code > 1 or any(width(line) > columns for line in lines):
            print(words, columns, code, [n for n in lines if width(n) > columns])
        if columns != 120:
            print(*lines, sep="\n")
text = subprocess.run([heft, "ls", "m.safetensors"], capture_output=True, text=True).stdout
print("a pipe gets whole names:", all(n in text for n in names))
P
