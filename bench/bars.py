#!/usr/bin/env python3
"""bars.py: draw docs/bars.svg, three comparisons, from the figures in docs/performance.md.

publish.py draws the picture after it has written the page."""
import pathlib
import re
import sys
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs/performance.md", ROOT / "docs/bars.svg"
WIDTH, LABEL, LONGEST, ROW, TOP, GAP = 720, 190, 400, 24, 34, 22
STYLE = """
text{fill:#1f2328}.t{font-weight:600}.e{text-anchor:end}.s{fill:#59636e}
.o{fill:#3b82c4}.p{fill:#8c959f}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.p{fill:#6e7681}}
"""


def section(page, name):
    found = re.search(rf"^### {name}\n(.*?)(?=^#|\Z)", page, re.M | re.S)
    return found[1] if found else ""


def cells(page, name, what):
    """Return the cells of a row of a section."""
    for line in section(page, name).splitlines():
        row = [c.strip(" *") for c in line.strip("|").split("|")]
        if row[0] == what:
            return row
    raise ValueError(f"section {name} of {PAGE.name} has no row '{what}'")


def at(page, name, what, column):
    """Return a number of a row below the head of a column."""
    heads = next((r for r in section(page, name).splitlines() if r.startswith("| |")), "")
    number = [c.strip() for c in heads.strip("|").split("|")].index(column)
    return float(cells(page, name, what)[number])


def comparisons(page):
    """Return (title, unit, [(label, value)]) of each comparison; the first label is Heft's."""
    million = "1000000 tensors"
    opening = [(label, at(page, "scaling", row, million) / 1000) for label, row in (
        ("Heft", "safetensors"), ("jansson, a JSON parser", "jansson on safetensors"))]
    hashing = cells(page, "hashing", "heft hash: speed / sha256sum")
    ratio, own = float(hashing[1].split()[0]), float(hashing[-1].split()[0])
    b3sum = float(cells(page, "hashing", "heft hash: speed / b3sum")[1].split()[0])
    copies = [(label, at(page, "growing", row, "1 GiB"))
              for label, row in (("heft convert", "heft convert"), ("cp", "cp"))]
    return [
        ("Open safetensors with a million tensors: shorter is better", "s", opening),
        ("Digest of a model's values, 512 MiB: longer is better", "GB/s",
         [("heft hash", own), ("b3sum", own / b3sum), ("sha256sum", own / ratio)]),
        ("Convert 1 GiB to another format: longer is better", "GB/s", copies),
    ]


def group(title, unit, rows, y):
    yield f'<text x="0" y="{y}" class="t">{escape(title)}</text>'
    most = max(value for _, value in rows)
    for i, (label, value) in enumerate(rows):
        top = y + 10 + ROW * i
        wide = max(value / most * LONGEST, 2)
        yield f'<text x="{LABEL - 10}" y="{top + 13}" class="e">{escape(label)}</text>'
        yield (f'<rect x="{LABEL}" y="{top}" width="{wide:.1f}" height="17" rx="2" '
               f'class="{"p" if i else "o"}"/>')
        yield (f'<text x="{LABEL + wide + 8:.1f}" y="{top + 13}" class="s">'
               f"{value:.2g} {unit}</text>")


def draw(page):
    body, y = [], TOP - 14
    for title, unit, rows in comparisons(page):
        body += group(title, unit, rows, y)
        y += 10 + ROW * len(rows) + GAP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 10}" '
            f'width="{WIDTH}" height="{y - 10}" font-family="system-ui,sans-serif" font-size="13" '
            f'role="img">\n<title>Heft beside other programs</title>\n<style>{STYLE}</style>\n'
            + "\n".join(body) + "\n</svg>\n")


def main():
    try:
        picture = draw(PAGE.read_text(encoding="utf-8"))
    except ValueError as missing:
        print(f"{PICTURE.name} stays as it is: {missing}", file=sys.stderr)
        return 1
    PICTURE.write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
