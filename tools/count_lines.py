#!/usr/bin/env python3
"""count_lines.py [--folders] BUILD [MOST]: count the lines of C of `heft` and `libheft` in a build.

Files .c and .h of src, cli and include count that the build compiled or included (ninja -t deps),
each once: lines without blank lines and comments, and all lines in parentheses. --folders prints
the former for each folder, too. With MOST, more lines than that are a failure."""
import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cli", "include")
# The command, and the libraries that it and libheft.so are made of.
OURS = re.compile(r"(heft|libheft[\w.-]*)\.p/")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def files_of(build):
    """Return the sources and headers of the objects in a build directory."""
    p = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                       check=True)
    found, is_ours = set(), False
    for line in p.stdout.splitlines():
        if line and not line[0].isspace():
            is_ours = OURS.match(line) is not None
        elif line and is_ours:
            found.add(pathlib.Path(os.path.normpath(build / line.strip())))
    own = (f.relative_to(ROOT) for f in found if f.is_relative_to(ROOT))
    return sorted(f for f in own if f.parts[0] in FOLDERS and f.suffix in (".c", ".h"))


def lines_of(path):
    """Return the number of lines without blank lines and comments, and of all lines."""
    text = (ROOT / path).read_text()
    code = COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text)
    return sum(bool(line.strip()) for line in code.split("\n")), text.count("\n")


def main():
    args = [a for a in sys.argv[1:] if a != "--folders"]
    build, most = pathlib.Path(args[0]).resolve(), int(args[1]) if len(args) > 1 else None
    counts = {f: lines_of(f) for f in files_of(build)}
    if not counts:
        sys.exit(f"{build}: nothing is built")
    folders = collections.Counter()
    for f, (code, _) in counts.items():
        folders[str(f.parent)] += code
    if "--folders" in sys.argv:
        for folder, code in sorted(folders.items()):
            print(f"{code:7} {folder}")
    code, every = (sum(c[i] for c in counts.values()) for i in (0, 1))
    print(f"{code} lines of C in {len(counts)} files ({every} with blank lines and comments)")
    return int(most is not None and code > most)


sys.exit(main())
