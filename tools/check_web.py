#!/usr/bin/env python3
"""check_web.py [DIR]: check the npm package that build_web.py made in DIR (build-web).

The size of each module, the files of the package, the imports of each module, and the version. TAP
on stdout."""
import gzip
import json
import pathlib
import re
import sys
import tarfile

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 160 << 10  # bytes of a module, compressed by gzip -9
MEMORY = 2  # the kind of an import
FILES = {"heft.mjs", "core.mjs", "error.mjs", "input.mjs", "session.mjs", "model.mjs", "work.mjs",
         "worker.mjs", "diff.mjs", "heft.d.ts", "heft.wasm", "heft-simd.wasm", "README.md",
         "LICENSE", "package.json"}
IMPORTS = {b"read", b"open_shard", b"source_size", b"progress", b"random", b"finding"}
# Calls that would run text of a file as a program, or show the text as markup.
UNSAFE = re.compile(r"\beval\(|new Function|innerHTML|document\.write|insertAdjacentHTML")


def size_of(package, name):
    compressed = len(gzip.compress((package / name).read_bytes(), 9))
    print(f"# {name}: {compressed} bytes compressed, {MOST - compressed} below the limit")
    return [] if compressed <= MOST else [f"{compressed} bytes compressed, the limit is {MOST}"]


def leb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def imports_of(data):
    """Yield the names of the imports of a module."""
    at = 8
    while at < len(data):
        kind = data[at]
        size, at = leb(data, at + 1)
        if kind == 2:
            count, i = leb(data, at)
            for _ in range(count):
                n, i = leb(data, i)
                n, i = leb(data, i + n)
                yield data[i:i + n]
                what = data[i + n]
                first, i = leb(data, i + n + 1)
                for _ in range(1 + (first & 1) if what == MEMORY else 0):  # the limits in pages
                    _, i = leb(data, i)
        at += size


def check(into):
    """Yield (title, complaints)."""
    package = into / "package"
    for name in ("heft.wasm", "heft-simd.wasm"):
        yield f"{name} has at most {MOST} bytes compressed", size_of(package, name)
        found = set(imports_of((package / name).read_bytes()))
        other = sorted(found ^ (IMPORTS | {b"memory"}))
        yield f"{name} imports its memory, and what heft_web.c declares", [
            f"not in both: {n}" for n in other
        ]
    about = json.loads((package / "package.json").read_text())
    packed = into / f"heft-{about['version']}.tgz"
    with tarfile.open(packed) as tar:
        names = {m.name.removeprefix("package/") for m in tar.getmembers()}
    wrong = sorted(FILES ^ names)
    yield "the tarball has the files of the package", [f"missing or unexpected: {n}" for n in wrong]
    script = (package / "heft.mjs").read_text()
    ok = f'version = "{about["version"]}"' in script
    yield "the modules state the version", [] if ok else [f"heft.mjs: not {about['version']}"]
    yield "the package has no dependencies", ["dependencies"] if "dependencies" in about else []
    unsafe = [f"{p.name}: {m}" for p in package.glob("*.mjs")
              for m in UNSAFE.findall(p.read_text())]
    yield "no module runs text or writes markup", unsafe


sys.exit(tap.report(check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build-web"))))
