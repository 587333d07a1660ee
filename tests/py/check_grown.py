#!/usr/bin/env python3
"""check_grown.py LIBRARY SOURCE INCLUDE CC...: run programs built with other versions' headers.

The structs that begin with a size have an additional member in the headers of a later version, and
lack their last member in those of an earlier version. TAP on stdout."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

STRUCT = re.compile(r"((?:typedef )?struct (heft_\w+) \{(?:[^{}]|\{[^{}]*\})*?)(\n\}[^;]*;)")
# docs/abi.md: the size of these structs never changes.
FROZEN = {"heft_allocator", "heft_executor"}
WHOLE = {"heft_scratch_ops"}  # every member is required


def sized(text):
    for m in STRUCT.finditer(text):
        body = re.sub(r"/\*.*?\*/", "", m[1], flags=re.S)
        if re.search(r"\{\s*size_t size;",
                     body) and "sizeof(%s)" % m[2] in m[1] and m[2] not in FROZEN:
            yield m


def members(body):
    """Return (begin, end) of each member's declaration, without comments."""
    plain = re.sub(r"/\*.*?\*/", lambda c: " " * len(c[0]), body, flags=re.S)
    start = plain.index("{") + 1
    return [(m.start() + start, m.end() + start) for m in re.finditer(r"[^;]+;", plain[start:])]


def changed(text, change):
    for m in sorted(sized(text), key=lambda m: -m.start()):
        text = text[: m.start()] + change(m) + text[m.end() :]
    return text


def grow(m):
    return m[1] + "\n    uint64_t grown[2];" + m[3]


BYTES = {"bool": 1, "uint8_t": 1, "uint32_t": 4}


def bytes_of(member):
    m = re.search(r"(\w+) \w+(?:\[(\d+)\])?;", re.sub(r"/\*.*?\*/", "", member, flags=re.S))
    return BYTES[m[1]] * int(m[2] or 1)


def is_reserved(m):
    return bool(re.search(r"\breserved\b[^;]*;[^;]*$", m[1]))


def shrink(m):
    """Remove the last member; a reserved array at the end grows by the size of the member before
    it."""
    if m[2] in WHOLE:
        return m[0]
    begin, end = members(m[1])[-1]
    if not is_reserved(m):
        return m[1][:begin] + m[1][end:] + m[3]
    first = members(m[1])[-2][0]
    reserved_size = bytes_of(m[1][first:begin]) + bytes_of(m[1][begin:end])
    return m[1][:first] + f"\n    uint8_t reserved[{reserved_size}];" + m[3]


def init_of(name):
    return name.upper() + "_INIT"


def changed_inits(text, names, more):
    """Adapt the _INIT macros; `names` maps a struct to True if it ends with reserved bytes."""
    for name, reserved in names.items():
        m = re.search(r"#define %s\b(?:[^\n]*\\\n)*[^\n]*\n" % init_of(name), text)
        if not m:
            continue
        body = m[0].replace("\\\n", " ").split(init_of(name), 1)[1].strip()
        inner = body[1:-1].strip().rstrip(",")
        depth, cuts = 0, []
        for i, c in enumerate(inner):
            depth += (c in "{(") - (c in "})")
            if c == "," and not depth:
                cuts.append(i)
        fewer = inner[: cuts[-2]] + ", { 0 }" if reserved else inner[: cuts[-1]]
        inner = inner + ", { 0 }" if more else fewer
        text = text[: m.start()] + "#define %s { %s }\n" % (init_of(name), inner) + text[m.end() :]
    return text


def run(cc, library, source, include, change, more):
    with tempfile.TemporaryDirectory() as d:
        to = pathlib.Path(d) / "heft"
        to.mkdir()
        names = set()
        for header in sorted((pathlib.Path(include) / "heft").glob("*.h")):
            text = header.read_text()
            structs = {m[2]: is_reserved(m) for m in sized(text)}
            if change:
                text = changed_inits(changed(text, change), structs, more)
            names |= set(structs)
            (to / header.name).write_text(text)
        if len(names) < 18:
            return ["only these structs begin with their size: " + ", ".join(sorted(names))]
        program = d + "/program"
        folder = str(pathlib.Path(library).parent)
        build = subprocess.run([
            *cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I" + d,
            *(["-DGROWN"] if more else []), source, "-o", program, library, "-Wl,-rpath," + folder
        ], capture_output=True, text=True)
        if build.returncode:
            return build.stderr.splitlines()[:20]
        ran = subprocess.run([program], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": folder})
        return [] if not ran.returncode else [f"status {ran.returncode}", *ran.stdout.splitlines()]


def main():
    library, source, include, *cc = sys.argv[1:]
    return tap.report([
        ("a program of this version runs", run(cc, library, source, include, None, False)),
        ("a program of a later version runs", run(cc, library, source, include, grow, True)),
        ("a program of an earlier version runs", run(cc, library, source, include, shrink, False)),
    ])


sys.exit(main())
