#!/usr/bin/env python3
"""check_analyzer.py BUILD: analyse src and cli with gcc -fanalyzer. TAP on stdout.

The commands come from BUILD/compile_commands.json. A finding that is wrong is listed in
analyzer.tsv, with its reason; a row of the list without a finding is a complaint, too."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tools/analyzer.tsv"
# Without optimisation a finding has the name of the function in the source.
OPTIONS = ["-O0", "-fanalyzer", "-fdiagnostics-plain-output", "-fdiagnostics-path-format=none",
           "-Wno-error", "-S", "-o", os.devnull]
FUNCTION = re.compile(r"[^:]+: In function '(\w+)':$")
FINDING = re.compile(r"([^:]+):(\d+):\d+: warning: (.*) \[-Wanalyzer-([\w-]+)\]$")


def commands(build):
    """Return {file: (directory, command)} of the sources, each once."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "cli"):
            words = shlex.split(entry["command"])
            found.setdefault(path.relative_to(ROOT), (entry["directory"], words))
    return found


def plain(words):
    """Return the command with gcc, without dependency files, output and optimisation."""
    kept, skip = ["gcc"], False
    for word in words[next(i for i, w in enumerate(words) if w.startswith("-")):]:
        if not skip and word not in ("-MD", "-MQ", "-MF", "-o", "-c") and word[:2] != "-O":
            kept.append(word)
        skip = word in ("-MQ", "-MF", "-o")
    return kept


def analyse(item):
    """Return (file, function, kind, text) of each finding in a source."""
    name, (directory, words) = item
    p = subprocess.run([*plain(words), *OPTIONS], cwd=directory, capture_output=True,
                       text=True, env={**os.environ, "LC_ALL": "C"})
    function, found = "", []
    for line in p.stderr.splitlines():
        if m := FUNCTION.match(line):
            function = m[1]
        elif m := FINDING.match(line):
            found.append((str(name), function, m[4], f"{name}:{function}: {m[3]} ({m[1]}:{m[2]})"))
    if p.returncode:
        found.append((str(name), "", "error", p.stderr))
    return found


def listed():
    rows = [line.split("\t") for line in LIST.read_text().splitlines()[1:]]
    return {(file, function, kind): reason for file, function, kind, reason in rows}


def main():
    sources = commands(pathlib.Path(sys.argv[1]).resolve())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f for file in pool.map(analyse, sources.items()) for f in file]
    known = listed()
    unused = set(known) - {f[:3] for f in found}
    return tap.report([
        (f"gcc -fanalyzer finds nothing in {len(sources)} files",
         [text for *key, text in found if tuple(key) not in known]),
        ("each listed finding exists", [" ".join(key) for key in sorted(unused)]),
    ])


sys.exit(main())
