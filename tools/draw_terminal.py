#!/usr/bin/env python3
"""draw_terminal.py HEFT: draw docs/terminal.svg.

The commands below run in a folder with the model of the demo; what they print on a terminal, in its
colours, becomes lines of the picture, for light and dark pages."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/terminal.svg"
COMMANDS = [
    "heft ls source.safetensors 'blocks.0.ff*'",
    "heft convert source.safetensors model.gguf",
    "heft diff source.safetensors model.gguf",
    "head -c 9M source.safetensors > cut.safetensors",
    "heft doctor cut.safetensors",
]
COLUMNS, ADVANCE, LINE, MARGIN, BAR = 84, 7.83, 19, 18, 34
CLASSES = {"1": "b", "31": "r", "32": "g", "33": "y"}  # codes that choose a style
STYLE = """
.w{fill:#f6f8fa;stroke:#d0d7de}text{fill:#1f2328;white-space:pre}.b{font-weight:700}
.r{fill:#b3261e}.g{fill:#1a7f37}.y{fill:#8a6100}.p{fill:#59636e}.d{fill:#d0d7de}
@media(prefers-color-scheme:dark){.w{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}
.r{fill:#ff8a80}.g{fill:#57d364}.y{fill:#e3b341}.p{fill:#9198a1}.d{fill:#30363d}}
"""


def printed(heft):
    """Yield the lines of a terminal on which the commands run."""
    heft = pathlib.Path(heft).resolve()
    env = {**os.environ, "PATH": f"{heft.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8",
           "LD_LIBRARY_PATH": str(heft.parent), "COLUMNS": str(COLUMNS)}
    env.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "tools/make_model.py", "source.safetensors"],
                       cwd=folder, check=True)
        for command in COMMANDS:
            yield f"$ {command}"
            coloured = re.sub(r"^heft (\w+)", r"heft \1 --color=always", command)
            p = subprocess.run(coloured, shell=True, cwd=folder, env=env, text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            yield from p.stdout.splitlines()


def wrapped(line):
    """Return the rows of a line, which goes on below before the word that has no room."""
    rows, wide = [""], 0
    for word in re.findall(r" *[^ ]+", line):
        length = len(re.sub(r"\x1b\[\d*m", "", word))
        if wide + length > COLUMNS:
            rows.append("  ")
            word, length, wide = word.lstrip(" "), len(word.lstrip(" ")), 2
        rows[-1] += word
        wide += length
    return rows


def spans(row):
    """Return a row as text of SVG, with a tspan for each style."""
    out, style = "", ""
    for piece in re.split(r"(\x1b\[\d*m)", row.rstrip()):
        code = re.fullmatch(r"\x1b\[(\d*)m", piece)
        if code:
            style = CLASSES.get(code[1], "")
        elif piece:
            text = escape(piece, quote=False)
            out += f'<tspan class="{style}">{text}</tspan>' if style else text
    return out


def draw(heft):
    rows = []
    for line in printed(heft):
        for row in wrapped(line):
            mark = ' class="p"' if row.startswith("$ ") else ""
            y = BAR + MARGIN + LINE * len(rows)
            rows.append(f'<text x="{MARGIN}" y="{y}"{mark} xml:space="preserve">'
                        f"{spans(row)}</text>")
    wide = round(COLUMNS * ADVANCE + 2 * MARGIN)
    high = BAR + MARGIN + LINE * len(rows)
    dots = "".join(f'<circle cx="{MARGIN + 5 + 18 * i}" cy="18" r="5" class="d"/>'
                   for i in range(3))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
            f'height="{high}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'
            f'DejaVu Sans Mono,monospace" font-size="13" role="img">\n'
            f"<title>Heft on a terminal</title>\n<style>{STYLE}</style>\n"
            f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="8" class="w"/>\n'
            f"{dots}\n" + "\n".join(rows) + "\n</svg>\n")


def differences(heft):
    old = PICTURE.read_text(encoding="utf-8").splitlines()
    new = draw(heft).splitlines()
    yield from (f"drawn: {row}" for row in new if row not in old)
    yield from (f"shown: {row}" for row in old if row not in new)


if __name__ == "__main__":
    PICTURE.write_text(draw(sys.argv[1]), encoding="utf-8")
