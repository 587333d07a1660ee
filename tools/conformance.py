#!/usr/bin/env python3
"""conformance.py [--write | --missing] BOOK LOG...: compare requirements with test results.

The requirements are in tests/conformance/*.tsv, and docs/conformance.md is the page made from these
tables. BOOK has the steps of a check, written by tally.py; LOG is a JSON log of Meson, and later
logs override earlier ones. TAP on stdout: a line for each requirement, open requirements as
skipped. --write replaces the page unless a requirement fails. --missing only prints the names of
Meson's tests without a result.

A table begins with lines "# KEY: VALUE": title, description, and the number of open requirements,
which may only fall. Each row is a requirement: number, section of the specification, text, and
tests separated by "; ", or "open: " and a reason. A test is named as in the output of a run: "NAME:
TITLE" for a line of TAP of Meson's test NAME, or "NAME" for a whole test or a step of the check.
Numbers are never reused; a new requirement gets the next number, anywhere in the table."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "conformance.md"
TABLES = ["burnpack", "embd", "gptrs", "mag", "ztensor"]
HEADER = ["number", "section", "requirement", "tests"]
FIXED = ["title", "about", "open"]
INTRO = """# Conformance

What the specifications require, clause by clause, and the tests that hold Heft to it. This page \
is written by the
test run (`./dev conformance`) from the tables in [tests/conformance](../tests/conformance); \
`./dev check` fails when a
test that is named here did not run or did not pass, when a requirement has none, and when this \
page is out of date.

{summary}

Some requirements are not in the words of a specification: where it leaves a choice, the \
requirement says which one
Heft made, and limits, errors and abilities that anyone would expect have numbers as well. The \
pages in
[docs/formats](formats) describe the layouts, what cannot be carried, and the rules that `heft \
verify` names. Numbers are
for good: what is added gets a new one.

| a test named | is |
|---|---|
| `samples of F: F/good/NAME` | a file that [tests/py](../tests/py)`/gen_F.py` makes, without \
Heft: its tensors have to be read as they were made, by the command |
| `samples of F: F/bad/NAME` | a file of the same program that breaks one rule: `heft verify` has \
to reject it, to warn, or to accept it, as the program says |
| `formats-CHECK: F/…` | the same files, through the library: tensors, metadata and ids read as \
they were made (facts), opened in eight ways (open_methods), cut short (truncated), damaged, \
written again with the same bytes (rewritten), written by many threads and to pipes (sinks); see \
[tests/every_format.c](../tests/every_format.c) |
| `written files: SAMPLE as FORMAT …`, `edited files: …` | a file that Heft converted from the \
sample, or edited, judged by an independent reader in Python (tests/py/read_F.py), which accounts \
for every byte |
| `clauses: …` | what no single file shows: large files, and what becomes of a file that is \
converted ([check_clauses.py](../tests/py/check_clauses.py)) |
| `cli: COMMAND/CASE` | [tests/cli](../tests/cli)`/COMMAND/CASE.sh`, with its expected output |
| any other `NAME: TITLE` | the function TITLE of [tests](../tests)`/test_NAME.c`, or a case of \
the Python program that Meson's test NAME runs ([tests/meson.build](../tests/meson.build)) |
| a name alone | a program that is one test, or a step of `./dev check` |
"""


class Table:
    def __init__(self, name):
        self.path = ROOT / "tests" / "conformance" / f"{name}.tsv"
        lines = self.path.read_text().splitlines()
        head = [line for line in lines if line.startswith("# ")]
        self.about = dict(line[2:].split(": ", 1) for line in head)
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        if list(self.about) != FIXED or not rows or rows.pop(0) != HEADER:
            raise SystemExit(f"{self.path}: a table begins with {FIXED} and {HEADER}")
        for row in rows:
            if len(row) != len(HEADER) or not all(row):
                raise SystemExit(f"{self.path}: not {len(HEADER)} fields: {row}")
        self.rows = [dict(zip(HEADER, row)) for row in rows]
        for row in self.rows:
            row["open"] = row["tests"].removeprefix("open: ") if row["tests"].startswith(
                "open: ") else None
            row["tests"] = [] if row["open"] else row["tests"].split("; ")
        self.open = [row for row in self.rows if row["open"]]


# ---- results of a run -------------------------------------------------------------------------


def results_of(text, name, result):
    """Yield (test, outcome) pairs of one of Meson's tests."""
    lines = re.findall(r"^(not )?ok\b *\d*(?: - | *)(.*?)( *# *skip\b.*)?$", text, re.M | re.I)
    if not lines:
        yield name, {"OK": "passed", "SKIP": "skipped"}.get(result, "failed")
    for no, title, skip in lines:
        yield f"{name}: {title}", "skipped" if skip else "failed" if no else "passed"


def read_lines(path):
    try:
        return pathlib.Path(path).read_text().splitlines()
    except OSError as e:
        raise SystemExit(f"{e}: ./dev check leaves results there") from None


def read_results(book, logs):
    found = {}
    for step in map(json.loads, read_lines(book)):
        passed, failed, _ = step["counts"]
        found[step["label"]] = "failed" if failed else "passed" if passed else "skipped"
    for test in (json.loads(line) for log in logs for line in read_lines(log)):
        found.update(
            results_of(test.get("stdout") or "", test["name"].split(" / ")[-1], test["result"]))
    return found


# ---- comparing --------------------------------------------------------------------------------


def complaints_of(row, found):
    for test in row["tests"]:
        outcome = found.get(test, "no test of this name ran")
        if outcome != "passed":
            yield f"{test}: {outcome}"


def missing_results(tables, found):
    """Return the names of Meson's tests that a row names and that have no result."""
    tests = {test for t in tables for row in t.rows for test in row["tests"]}
    return {test.split(": ")[0] for test in tests - set(found) if ": " in test}


def table_faults(table):
    prefix = table.rows[0]["number"].split("-")[0]
    numbers = [row["number"] for row in table.rows]
    for number in numbers:
        if not re.fullmatch(prefix + r"-[1-9]\d*", number) or numbers.count(number) > 1:
            yield f"{number}: twice, or not {prefix}- and a number"
    bound = int(table.about["open"])
    if len(table.open) > bound:
        yield f"{len(table.open)} requirements are open, at most {bound} may be"
    if len(table.open) < bound:
        yield (f"only {len(table.open)} requirements are open: write 'open: {len(table.open)}' "
               "at the top of the table")


# ---- the page ---------------------------------------------------------------------------------


def grid(*rows):
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    cells.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def anchor(title):
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def format_tests(row):
    """Format the tests of a row: one line per test, with all titles of the test."""
    titles = {}
    for test in row["tests"]:
        name, _, title = test.partition(": ")
        titles.setdefault(name, []).extend([f"`{title}`"] if title else [])
    lines = [f"{name}: {', '.join(t)}" if t else name for name, t in titles.items()]
    return "**open**" if row["open"] else "<br>".join(lines)


def make_page(tables):
    titles = [t.about["title"] for t in tables]
    counts = [[f"[{title}](#{anchor(title)})", len(t.rows), len(t.rows) - len(t.open), len(t.open)]
              for title, t in zip(titles, tables)]
    total = ["all"] + [sum(row[i] for row in counts) for i in (1, 2, 3)]
    summary = grid(["specification", "requirements", "held by tests", "[open](#open)"], *counts,
                   total)
    parts = [INTRO.format(summary=summary)]
    open_rows = [[row["number"], row["requirement"], row["open"]] for t in tables for row in t.open]
    open_grid = grid(["number", "requirement", "what is missing"], *
                     open_rows) if open_rows else "Nothing."
    parts.append("## Open\n\n" + open_grid)
    for title, t in zip(titles, tables):
        rows = [[row["number"], row["section"], row["requirement"],
                 format_tests(row)] for row in t.rows]
        page = f"formats/{t.path.stem}.md"
        about = f"{t.about['about']} The format's page: [{page}]({page})."
        parts.append(f"## {title}\n\n{about}\n\n" +
                     grid(["number", "section", "requirement", "held by"], *rows))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    book, *logs = [a for a in sys.argv[1:] if a not in options]
    tables, found = [Table(name) for name in TABLES], read_results(book, logs)
    if "--missing" in options:
        print(*sorted(missing_results(tables, found)), sep="\n", end="")
        return 0
    results = []
    for t in tables:
        results.append((f"the table of {t.about['title']}", list(table_faults(t)), None))
        results += [(f"{row['number']} {row['requirement']}", list(complaints_of(
            row, found)), row["open"]) for row in t.rows]
    page = make_page(tables)
    if "--write" in options and not any(complaints for _, complaints, _ in results):
        PAGE.write_text(page)
    is_same = PAGE.exists() and PAGE.read_text() == page
    results.append(("docs/conformance.md is the page that this run makes",
                    [] if is_same else ["it is not; './dev conformance' writes it"], None))
    results.sort(key=lambda result: bool(result[1]))  # failures come last, where readers look
    print(f"1..{len(results)}")
    for n, (title, complaints, why) in enumerate(results, 1):
        skipped = f" # SKIP open: {why}" if why else ""
        print(f"{'not ok' if complaints else 'ok'} {n} - {title.replace('#', '')}{skipped}")
        for line in complaints:
            print("#  ", line)
    print(
        f"# {sum(len(t.rows) for t in tables)} requirements, {sum(len(t.open) for t in tables)} "
        f"of them open"
    )
    return int(any(complaints for _, complaints, _ in results))


sys.exit(main())
