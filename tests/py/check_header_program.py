#!/usr/bin/env python3
"""check_header_program.py LIBRARY INCLUDE CC...: compile and run the program in heft.h.

The program stands in the first comment of the header and prints the elements of a tensor. TAP on
stdout."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402


def program_in(header):
    """Return the code of the first comment: lines indented by five spaces, from #include to the
    last brace."""
    comment = re.match(r"/\*(.*?)\*/", header, re.S)[1]
    lines = [line.removeprefix(" *") for line in comment.splitlines()]
    begin = next(i for i, line in enumerate(lines) if line.startswith("     #include"))
    end = next(i for i, line in enumerate(lines) if line == "     }")
    return "\n".join(line[5:] for line in lines[begin : end + 1]) + "\n"


def check(library, include, cc):
    with tempfile.TemporaryDirectory(prefix="heft-header-") as folder:
        source, program, model = (pathlib.Path(folder) / name
                                  for name in ("main.c", "main", "m.safetensors"))
        source.write_text(program_in((pathlib.Path(include) / "heft/heft.h").read_text()))
        build = subprocess.run([
            *cc, "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-I" + include, source,
            "-o", program, library
        ], capture_output=True, text=True)
        if build.returncode:
            return build.stderr.splitlines()[:20]
        model.write_bytes(gen_shards.pack({"w": ("F16", [3], struct.pack("<3e", 1.5, -2.25, 3))}))
        env = {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(library).parent)}
        for name, want in ("w", (0, "1.5\n-2.25\n3\n")), ("missing", (1, "")):
            p = subprocess.run([program, model, name], capture_output=True, text=True, env=env)
            if (p.returncode, p.stdout) != want:
                return [f"tensor {name}: exit {p.returncode}, not {want}", p.stdout, p.stderr]
        return []


def main():
    library, include, *cc = sys.argv[1:]
    return tap.report([("the program in heft.h compiles and runs", check(library, include, cc))])


sys.exit(main())
