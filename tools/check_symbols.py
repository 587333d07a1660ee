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
    nodes = dict(re.findall(r"^(HEFT_[\w.]+)\s*\{(.*?)^\}", text, re.M | re.S))
    by_node = {node: re.findall(r"\b(heft_\w+);", names) for node, names in nodes.items()}
    mapped = [name for names in by_node.values() for name in names]
    private = next(h for h in headers if pathlib.Path(h).name == "private.h")
    api = set().union(*(declared(h) for h in headers))
    nm = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                        text=True)
    exported = {line.split()[-1].split("@")[0] for line in nm.stdout.splitlines()} - nodes.keys()
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                             text=True).stdout
    return tap.report([
        ("the map names each function once, in order",
         [] if all(n == sorted(n) for n in by_node.values()) and len(set(mapped)) == len(mapped)
         else [str(mapped)]),
        ("map and headers agree", list(differences(set(mapped), api, "the map", "the headers"))),
        ("the functions of private.h are those of HEFT_PRIVATE",
         list(differences(set(by_node["HEFT_PRIVATE"]), declared(private), "HEFT_PRIVATE",
                          "private.h"))),
        ("map and library agree", list(differences(set(mapped), exported, "the map",
                                                   "the library"))),
        ("the library is libheft.so.0", [] if "soname: [libheft.so.0]" in dynamic else [dynamic]),
    ])


sys.exit(main())
