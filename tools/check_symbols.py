#!/usr/bin/env python3
"""check_symbols.py MAP LIBRARY HEADER...: compare exported functions.

The symbol map, the shared library and the HEFT_API declarations of the headers must name the same
functions. TAP on stdout."""
import pathlib
import re
import subprocess
import sys

import tap


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    return set(re.findall(r"HEFT_API\b[^;]*?\b(heft_\w+)\s*\(", text))


def differences(a, b, name_a, name_b):
    yield from (f"{name} is in {name_a}, not in {name_b}" for name in sorted(a - b))
    yield from (f"{name} is in {name_b}, not in {name_a}" for name in sorted(b - a))


def main():
    map_file, library, *headers = sys.argv[1:]
    text = pathlib.Path(map_file).read_text()
    nodes = re.findall(r"^(HEFT_[0-9.]+)\s*\{", text, re.M)
    mapped = re.findall(r"\b(heft_\w+);", text)
    api = set().union(*(declared(h) for h in headers))
    nm = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                        text=True)
    exported = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()} - set(nodes)
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                             text=True).stdout
    return tap.report([
        ("the map names each function once, in order",
         [] if mapped == sorted(set(mapped)) else [str(mapped)]),
        ("map and headers agree", list(differences(set(mapped), api, "the map", "the headers"))),
        ("map and library agree", list(differences(set(mapped), exported, "the map",
                                                   "the library"))),
        ("the library is libheft.so.0", [] if "soname: [libheft.so.0]" in dynamic else [dynamic]),
    ])


sys.exit(main())
