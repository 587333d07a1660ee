#!/usr/bin/env python3
"""platforms.py FOLDER: write docs/platforms.md from the counts in FOLDER/*.json.

tools/machines.py and the tool for Windows write a file for each target: target, compiler, runner,
suites (name, passed, failed, skipped), date and notes."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/platforms.md"
BEGIN, END = "<!-- results: written by tools/platforms.py -->", "<!-- end of results -->"


def counted(suite):
    """Return the counts of a suite as text; passed tests need no word."""
    more = "".join(f", {suite[kind]} {kind}" for kind in ("failed", "skipped") if suite[kind])
    return f"{suite['name']} {suite['passed']}{more}"


def row(found):
    suites = "; ".join(counted(s) for s in found["suites"])
    cells = [found["target"], found["notes"], found["compiler"], found["runner"], suites,
             found["date"]]
    return "| " + " | ".join(cells) + " |"


def table(folder):
    files = sorted(pathlib.Path(folder).glob("*.json"))
    rows = [row(json.loads(f.read_text(encoding="utf-8"))) for f in files]
    head = ["| Target | Build | Compiler | Runs in | Tests passed | Date |",
            "|---|---|---|---|---|---|"]
    return "\n".join(head + rows)


def main():
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(sys.argv[1])}\n{END}{after}", encoding="utf-8")


main()
