#!/usr/bin/env python3
"""publish.py [RESULTS]: write the results of run.py to docs/performance.md and docs/cost.svg.

RESULTS is bench/results.json by default. The figures go between two marks of the page; nobody edits
them by hand. A run of some sections replaces only these sections, with a date."""
import json
import pathlib
import re
import sys

import bars
from draw import draw
from harness import RESULTS, ROOT, bound_of, first_line, number, verdict_of

PAGE, PICTURE = ROOT / "docs" / "performance.md", ROOT / "docs" / "cost.svg"
BEGIN, END = "<!-- figures: written by bench/publish.py -->", "<!-- end of figures -->"
GRIDS = {"scaling", "growing", "casting", "kernels"}  # sections that become matrices
PYTHON_VERSION = "import {0}; print({0}.__version__)"
ASKED = {"cp, cat and sha256sum": ("cp", "--version"), "zstd": ("zstd", "--version"),
         "jansson": ("pkg-config", "--modversion", "jansson"),
         "libcbor": ("pkg-config", "--modversion", "libcbor"),
         "libcrypto": ("pkg-config", "--modversion", "libcrypto"),
         "numpy": (sys.executable, "-c", PYTHON_VERSION.format("numpy")),
         "PyTorch": (sys.executable, "-c", PYTHON_VERSION.format("torch"))}


def peers():
    """Return {name: version} of the installed peers."""
    found = {name: first_line(*command) for name, command in ASKED.items()}
    versions = {name: re.search(r"\d+(\.\d+)+", said) for name, said in found.items() if said}
    return {name: version[0] for name, version in versions.items() if version}


def describe(about):
    """Describe the machine in a line."""
    return (f"{about['date']}, {about['heft'].capitalize()}, {about['cpu']}, "
            f"{about['processors']} processors, {about['memory']}, {about['kernel']}, "
            f"{about['file_system']}"
            + (", quick run with smaller sizes" if about["quick"] else ""))


def table(rows):
    """Yield the rows of a section as a table, without empty columns."""
    columns = {
        "what": [row["what"] for row in rows], "figure": [
            "" if row["median"] is None else f"{number(row['median'])} {row['unit']}"
            for row in rows
        ], "lowest and highest": [
            f"{number(row['min'])} – {number(row['max'])}" if row["runs"] > 1 else ""
            for row in rows
        ], "limit": [bound_of(row).replace(">=", "≥").replace("<=", "≤") for row in rows],
        "": [verdict_of(row).replace("OVER", "**over**") for row in rows], "Heft itself": [
            f"{number(row['own'])} {row['own_unit']}" if row["own"] is not None else ""
            for row in rows
        ]
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for cells in zip(*columns.values()):
        yield f"| {' | '.join(cells)} |"


def cell(row):
    figure = number(row["median"])
    return f"**{figure}**" if row["holds"] is False else figure


def grid(rows):
    """Yield rows with sizes, types or instruction sets as a grid, and other rows as in table()."""
    cells, sizes, plain = {}, {}, []
    for row in rows:
        fits = re.fullmatch(r"(.+), (\d+ (tensors|MiB|GiB)|(to|on) [^:]+)(: .*)?", row["what"])
        if fits:
            cells.setdefault((fits[1], row["unit"]), {})[fits[2]] = cell(row)
            sizes[fits[2]] = True
        else:
            plain.append(row)
    yield f"| | {' | '.join(sizes)} | |"
    yield "|---" * (len(sizes) + 2) + "|"
    for (what, unit), values in cells.items():
        yield f"| {what} | {' | '.join(values.get(size, '') for size in sizes)} | {unit} |"
    if plain:
        yield ""
        yield from table(plain)


def tables(results):
    versions = ", ".join(f"{name} {version}" for name, version in results.get("peers", {}).items())
    held = [row["holds"] for row in results["figures"]]
    yield f"{describe(results)}. Peers: {versions}."
    yield ""
    yield (
        f"Within their limit: {held.count(True)} figures; over it: {held.count(False)}. The run "
        f"took "
        f"{results['took'] // 60} minutes {results['took'] % 60} seconds.")
    yield "\n![Cost against size](cost.svg)"
    for _, lines in sections(results):
        yield from lines


def sections(results, when=""):
    """Yield (name, lines) of each section with figures; `when` follows the description."""
    for section in results["sections"]:
        name = section["name"]
        rows = [row for row in results["figures"] if row["section"] == name]
        if rows:
            yield name, [f"\n### {name}\n\n{section['about']}{when}\n",
                         *(grid if name in GRIDS else table)(rows)]


def replaced(text, results):
    """Replace or append the sections of a run of some sections in the text of the figures."""
    when = f" Measured on {results['date']}."
    for name, lines in sections(results, when):
        new = "\n".join(lines).strip() + "\n\n"
        old = re.search(rf"^### {re.escape(name)}\n.*?(?=^### |\Z)", text, re.M | re.S)
        text = text[:old.start()] + new + text[old.end():] if old else text.rstrip() + "\n\n" + new
    return text.strip()


def publish(path):
    results = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    before, marked, rest = page.partition(BEGIN)
    figures, ended, after = rest.partition(END)
    if not marked or not ended:
        sys.exit(f"{PAGE.name} lacks the marks between which figures stand")
    picture = draw(results, describe(results))
    text = "\n".join(tables(results)) if picture else replaced(figures, results)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    if picture:
        PICTURE.write_text(picture, encoding="utf-8")
    bars.main()
    print(f"{PAGE.relative_to(ROOT)}: {len(results['figures'])} figures"
          + (f"; {PICTURE.relative_to(ROOT)}" if picture else ""))


if __name__ == "__main__":
    publish(sys.argv[1] if len(sys.argv) > 1 else RESULTS)
