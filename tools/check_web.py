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

import build_web
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Bytes of a module, compressed by gzip -9: what every page loads, and what only some models need.
MOST = {"heft.wasm": 160 << 10, "heft-simd.wasm": 160 << 10, "heft-full.wasm": 256 << 10}
MEMORY = 2  # the kind of an import
MODULES = {"heft", "node", "inline", "node_inline", "browser", "node_platform", "platform", "core",
           "error", "finding", "input", "session", "model", "work", "worker", "node_worker",
           "tasks", "diff", "hash", "stats", "element", "inlined", "inline_files", "inline_full"}
FILES = {f"{name}.mjs" for name in MODULES} | {*MOST, "heft.d.ts", "element.d.ts", "README.md",
                                               "LICENSE", "NOTICE", "package.json"}
LICENCES = {"libxxhash-dev.txt"} if build_web.XXHASH_LICENCE.exists() else set()
NODE_ONLY = {"node.mjs", "node_inline.mjs", "node_platform.mjs", "node_worker.mjs"}
ENTRIES = {"node": ("./node.mjs", "./node_inline.mjs"), "browser": ("./heft.mjs", "./inline.mjs"),
           "default": ("./heft.mjs", "./inline.mjs")}
IMPORTS = {b"read", b"open_shard", b"source_size", b"progress", b"random", b"finding"}
# Calls that would run text of a file as a program, or show the text as markup.
UNSAFE = re.compile(r"\beval\(|new Function|innerHTML|document\.write|insertAdjacentHTML")


def size_of(package, name):
    compressed = len(gzip.compress((package / name).read_bytes(), 9))
    most = MOST[name]
    print(f"# {name}: {compressed} bytes compressed, {most - compressed} below the limit")
    return [] if compressed <= most else [f"{compressed} bytes compressed, the limit is {most}"]


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


def imports_of_module(text):
    return re.findall(r"""(?:from|import)\s*\(?\s*["']([^"']+)["']""", text)


def built_in(package):
    for path in sorted(package.glob("*.mjs")):
        other = [n for n in imports_of_module(path.read_text())
                 if n.startswith("node:") or n.removeprefix("./") in NODE_ONLY]
        if other and path.name not in NODE_ONLY:
            yield f"{path.name} imports {', '.join(other)}"


def computed(package):
    """Bundlers find files by `new URL("./name", import.meta.url)` with a literal name only."""
    for path in sorted(package.glob("*.mjs")):
        text = path.read_text()
        literal = re.findall(r'new URL\("\./([\w.-]+)", import\.meta\.url\)', text)
        if len(literal) != text.count("import.meta.url"):
            yield f"{path.name}: an address of a file is computed"
        yield from (f"{path.name}: there is no {n}" for n in literal if not (package / n).exists())


def described(about):
    if not re.fullmatch(r"@[a-z]+/heft", about["name"]):
        yield f"the name {about['name']} has no scope: 'heft' alone is another package"
    for key in ("keywords", "license", "description"):
        if not about.get(key):
            yield f"there is no {key}"
    for condition, wanted in ENTRIES.items():
        found = tuple(about["exports"][entry].get(condition) for entry in (".", "./inline"))
        if found != wanted:
            yield f"entries of {condition}: {found} instead of {wanted}"


def dead_links(package):
    for target in re.findall(r"\]\(([^)\s]+)\)", (package / "README.md").read_text()):
        if not re.match(r"https://|#", target) and not (package / target).is_file():
            yield f"README.md: {target}"


def check(into):
    """Yield (title, complaints)."""
    package = into / "package"
    for name, most in MOST.items():
        yield f"{name} has at most {most} bytes compressed", size_of(package, name)
        found = set(imports_of((package / name).read_bytes()))
        other = sorted(found ^ (IMPORTS | {b"memory"}))
        yield f"{name} imports its memory, and what heft_web.c declares", [
            f"not in both: {n}" for n in other
        ]
    about = json.loads((package / "package.json").read_text())
    packed = into / f"libheft-heft-{about['version']}.tgz"
    with tarfile.open(packed) as tar:
        names = {m.name.removeprefix("package/") for m in tar.getmembers()}
    wrong = sorted((FILES | LICENCES) ^ names)
    yield "the tarball has the files of the package", [f"missing or unexpected: {n}" for n in wrong]
    script = (package / "model.mjs").read_text()
    ok = f'version = "{about["version"]}"' in script
    yield "the modules state the version", [] if ok else [f"model.mjs: not {about['version']}"]
    yield "the package has no dependencies", ["dependencies"] if "dependencies" in about else []
    yield "modules of Node are imported by modules for Node only", list(built_in(package))
    yield "addresses of files are literal", list(computed(package))
    yield "package.json names the entries and describes the package", list(described(about))
    yield "links of the guide lead to files of the package", list(dead_links(package))
    unsafe = [f"{p.name}: {m}" for p in package.glob("*.mjs")
              for m in UNSAFE.findall(p.read_text())]
    yield "no module runs text or writes markup", unsafe


sys.exit(tap.report(check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build-web"))))
