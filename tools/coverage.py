#!/usr/bin/env python3
"""coverage.py BUILD [--raise]: report the coverage of src and cli, and hold the bounds.

BUILD was built with clang's coverage mapping (./dev coverage does it), and the tests wrote their
profiles into BUILD/profiles. clang's counters follow the conditions of the source; gcov counts
jumps of the optimised program, and the optimiser adds jumps that the source does not have.

Prints a table of the layers. BUILD/coverage.tsv gets a line for each file, BUILD/unreached.txt the
lines and the sides of conditions that no test reached. The bounds of tools/coverage.tsv may only
rise: --raise writes measured values above the bounds. tools/unreached.tsv lists the functions with
lines that no test reaches, each with the reason; a reason that begins with "at times" is for lines
that a test may reach, and functions that only small builds call are not measured. TAP on
stdout."""
import collections
import json
import math
import pathlib
import shutil
import subprocess
import sys

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDS = ROOT / "tools/coverage.tsv"
UNREACHED = ROOT / "tools/unreached.tsv"
HEADER = "layer\tlines, percent\tbranches, percent"
# The field numbers of a segment and of a branch in the export of llvm-cov.
LINE, COLUMN, COUNT, HAS_COUNT, IS_ENTRY, IS_GAP = range(6)
TRUE_COUNT, FALSE_COUNT = 4, 5
SMALL = "only small builds"  # begins the reason of functions that no other build calls
SLACK = 0.3  # percent: the order of threads decides whether some conditions are reached

Measured = collections.namedtuple("Measured", "lines lines_hit branches branches_hit")


def tool(name):
    """Return the path of a tool of LLVM, which belongs to the version of clang."""
    return shutil.which(name) or shutil.which(name + "-14") or name


def export(build):
    """Merge the profiles; return the coverage of each file."""
    profile = build / "coverage.profdata"
    raw = sorted((build / "profiles").glob("*.profraw"))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-failure-mode=all",
                    "-o", profile, *raw], check=True)
    # The counters of a function are added over all programs; two objects contain every function.
    p = subprocess.run([tool("llvm-cov"), "export", f"-instr-profile={profile}",
                        build / "libheft.so", f"-object={build / 'heft'}",
                        ROOT / "src", ROOT / "cli"], check=True, stdout=subprocess.PIPE)
    return json.loads(p.stdout)["data"][0]


def lines_of(file):
    """Return {line: count} of the lines with code, by the rule of llvm-cov's reports: the
    greatest count of the segments that begin in the line or reach into it."""
    counts, wrapped, by_line = {}, None, collections.defaultdict(list)
    for s in file["segments"]:
        by_line[s[LINE]].append(s)
    for line in range(min(by_line, default=1), max(by_line, default=0) + 1):
        here = by_line[line]
        starts = [s for s in here if s[HAS_COUNT] and s[IS_ENTRY] and not s[IS_GAP]]
        is_skipped = bool(here) and not here[0][HAS_COUNT] and here[0][IS_ENTRY]
        if not is_skipped and (starts or (wrapped and wrapped[HAS_COUNT])):
            counts[line] = max([s[COUNT] for s in starts]
                               + ([wrapped[COUNT]] if wrapped and wrapped[HAS_COUNT] else []))
        wrapped = here[-1] if here else wrapped
    return counts


def sides_of(file):
    """Return {(line, column, side): count}: a condition in a macro or in an inline function has
    the place of its source, and its counts are added."""
    sides = collections.Counter()
    for b in file["branches"]:
        for side, field in (("true", TRUE_COUNT), ("false", FALSE_COUNT)):
            sides[b[LINE], b[COLUMN], side] += b[field]
    return sides


def name_of(path):
    return str(pathlib.Path(path).resolve().relative_to(ROOT))


def spans_of(data):
    """Return {(file, function): (first line, last line)}."""
    return {(name_of(f["filenames"][0]), f["name"].split(":")[-1]):
            (f["regions"][0][0], f["regions"][0][2]) for f in data["functions"]}


def lines_of_small_builds(data, reasons):
    """Return {(file, line)} of listed functions that only small builds call."""
    calls = collections.Counter()
    for f in data["functions"]:
        calls[name_of(f["filenames"][0]), f["name"].split(":")[-1]] += f["count"]
    return {(key[0], n) for key, (begin, end) in spans_of(data).items()
            if not calls[key] and reasons.get(key, "").startswith(SMALL)
            for n in range(begin, end + 1)}


def measure(data, left_out):
    """Return ({file: Measured}, unreached lines and sides as text)."""
    files, missing = {}, []
    for file in data["files"]:
        name = name_of(file["filename"])
        if not name.startswith(("src/", "cli/")):
            continue  # initialisers of public headers
        lines = {n: c for n, c in lines_of(file).items() if (name, n) not in left_out}
        sides = {s: c for s, c in sides_of(file).items() if (name, s[0]) not in left_out}
        files[name] = Measured(len(lines), sum(map(bool, lines.values())),
                               len(sides), sum(map(bool, sides.values())))
        missing += [(name, n, 0, "line") for n, count in lines.items() if not count]
        missing += [(name, *side) for side, count in sides.items() if not count]
    return files, [f"{name}:{n}:{column} {what}" for name, n, column, what in sorted(missing)]


def layer_of(name):
    """cli, or src/core/read: the folder, of formats without the family."""
    parts = pathlib.Path(name).parent.parts
    return "/".join(parts[:2 if parts[1:2] == ("format",) else 3])


def add(rows):
    return Measured(*map(sum, zip(*rows)))


def percents(m):
    """Return the percentages of lines and branches, rounded down to one decimal."""
    return tuple(math.floor(1000 * hit / max(total, 1)) / 10
                 for hit, total in ((m.lines_hit, m.lines), (m.branches_hit, m.branches)))


def read_table(path):
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


def unreached_functions(data):
    """Return {(file, function): lines} of the functions with lines that no test reaches."""
    missed = {name_of(file["filename"]): [n for n, count in lines_of(file).items() if not count]
              for file in data["files"]}
    found = {(name, function): [n for n in missed.get(name, ()) if begin <= n <= end]
             for (name, function), (begin, end) in spans_of(data).items()
             if name.startswith(("src/", "cli/"))}
    return {key: lines for key, lines in found.items() if lines}


def write(build, files, missing):
    rows = ["\t".join([name, *map(str, m)]) for name, m in sorted(files.items())]
    header = "\t".join(["file", *Measured._fields])
    (build / "coverage.tsv").write_text("\n".join([header, *rows]) + "\n")
    (build / "unreached.txt").write_text("\n".join(missing) + "\n")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    data = export(build)
    rows = {(file, function): reason for file, function, reason in read_table(UNREACHED)}
    files, missing = measure(data, lines_of_small_builds(data, rows))
    write(build, files, missing)
    layers = collections.defaultdict(list)
    for name, m in files.items():
        for layer in (layer_of(name), "total"):
            layers[layer].append(m)
    measured = {layer: percents(add(rows)) for layer, rows in sorted(layers.items())}
    for layer, (lines, branches) in measured.items():
        print(f"# {layer:<16} {lines:5.1f} % of lines, {branches:5.1f} % of branches")
    bounds = {layer: (float(l), float(b)) for layer, l, b in read_table(BOUNDS)}
    if "--raise" in sys.argv[2:]:
        best = {layer: map(max, (m - SLACK for m in both), bounds.get(layer, (0, 0)))
                for layer, both in measured.items()}
        table = [f"{layer}\t{lines:.1f}\t{branches:.1f}"
                 for layer, (lines, branches) in best.items()]
        BOUNDS.write_text("\n".join([HEADER, *table]) + "\n")
        return 0
    found = unreached_functions(data)
    reached = [key for key, reason in rows.items()
               if key not in found and not reason.startswith("at times")]
    return tap.report([
        ("coverage reaches the bounds of coverage.tsv",
         [f"{layer}: {measured.get(layer)}, at least {bound}" for layer, bound in bounds.items()
          if any(m < b for m, b in zip(measured.get(layer, (0, 0)), bound))]),
        ("each function with lines that no test reaches is listed in unreached.tsv",
         [f"{file}: {function}(): lines {', '.join(map(str, lines))}"
          for (file, function), lines in sorted(found.items()) if (file, function) not in rows]),
        ("no function of unreached.tsv is reached as a whole",
         [f"{file}: every line of {function}() is reached" for file, function in sorted(reached)]),
    ])


sys.exit(main())
