#!/usr/bin/env python3
"""platforms.py FOLDER: write docs/platforms.md from the counts in FOLDER/*.json.

tools/machines.py and the tool for Windows write a file for each target: target, compiler, runner,
suites (name, passed, failed, skipped), date and notes. A target without a file keeps the row that
the page has, with the date of its run."""
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


def target_of(line):
    """Return the first cell of a row."""
    return line.split("|")[1].strip()


def table(folder, old):
    rows = {target_of(line): line for line in old if line.startswith("| ")}
    rows.pop("Target", None)
    for file in pathlib.Path(folder).glob("*.json"):
        line = row(json.loads(file.read_text(encoding="utf-8")))
        rows[target_of(line)] = line
    head = ["| Target | Build | Compiler | Runs in | Tests passed | Date |",
            "|---|---|---|---|---|---|"]
    return "\n".join(head + [rows[target] for target in sorted(rows)])


def main():
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    text = f"{before}{BEGIN}\n{table(sys.argv[1], old.splitlines())}\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")


main()
