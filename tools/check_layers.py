#!/usr/bin/env python3
"""check_layers.py [--objects ARCHIVE] [--commands FILE]: check the layers of docs/architecture.md.

  includes   every #include points downward
  ifdef      preprocessor conditions occur only in the files that may differ between platforms
  atomics    so do atomic built-ins of the compiler
  extensions only src/port and cli ask the C library for more than C11
  calls      objects of the core call nothing outside the core but four mem functions; formats
             call only the functions meant for formats; each part of the engine calls only the
             parts below
  data       the core has no writable data; cli only where the process has a state
  names      every linked name begins with heft_
  circles    no files of a directory, and no public headers, need each other, directly or through
             other files; heft.h includes element types only

The checks from "calls" on read the objects of ARCHIVE, the static library of the core. FILE is
compile_commands.json of a build: "extensions" reads the macros in the commands, too, and "data" the
objects of cli. TAP on stdout."""
import argparse
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEADERS = sorted(p.name for p in (ROOT / "include/heft").glob("*.h"))
PUBLIC = [name for name in HEADERS if name != "private.h"]
# Headers that each directory may include in addition to its own: public headers by name, all
# headers of a directory, or "any" header of the system.
ENGINE = ["heft.h", "heft_ext.h", "src/base", "src/model", "src/format/format.h"]
WRITE = [
    *ENGINE, "doctor.h", "scheme.h", "split.h", "write.h", "src/core/read", "src/core/shards",
    "src/core/check", "src/scheme"
]
PORT = [*HEADERS, "src/base", "src/port", "any"]
SAVE = [*PORT, "src/folder", "src/port/system", "src/port/folders"]
MAY_INCLUDE = {
    "src/base": ["heft.h", "memory_limits.h", "heft_ext.h", "editing.h"],
    "src/model": ["heft.h", "block_rows.h", "memory_limits.h", "ids.h", "vocabulary.h", "src/base"],
    "src/grammar": ["heft.h", "src/base"],
    "src/format": ["heft.h", "vocabulary.h", "src/base", "src/model", "src/grammar"],
    "src/core/read": [*ENGINE, "check.h"],
    "src/core/shards": [*ENGINE, "src/core/read"],
    "src/core/check": [*ENGINE, "check.h", "doctor.h", "src/core/read", "src/core/shards"],
    "src/scheme": [
        "heft.h", "heft_ext.h", "companion.h", "private.h", "scheme.h", "src/base", "src/model",
        "src/grammar", "src/core/read"
    ],
    "src/logical": [
        "heft.h", "heft_ext.h", "check.h", "quantise.h", "scheme.h", "src/base", "src/model",
        "src/grammar", "src/core/read", "src/core/shards", "src/scheme"
    ],
    "src/map": [
        "heft.h", "heft_ext.h", "check.h", "companion.h", "gguf_texts.h", "map.h", "src/base",
        "src/model",
        "src/core/read", "src/core/shards"
    ],
    "src/combine": [
        "heft.h", "heft_ext.h", "check.h", "src/base", "src/model", "src/core/read",
        "src/core/shards"
    ],
    "src/blend": [
        "heft.h", "heft_ext.h", "blend.h", "companion.h", "src/base", "src/model", "src/core/read",
        "src/companion", "src/combine"
    ],
    "src/lora": [
        "heft.h", "heft_ext.h", "companion.h", "lora.h", "write.h", "src/base", "src/model",
        "src/grammar", "src/core/read",
        "src/scheme", "src/combine"
    ],
    "src/mix": [
        "heft.h", "heft_ext.h", "mix.h", "src/base", "src/model", "src/core/read"
    ],
    "src/gguf": [
        "heft_ext.h", "companion.h", "gguf_texts.h", "vocabulary.h", "src/base", "src/model",
        "src/grammar", "src/companion", "src/core/read"
    ],
    "src/core/write/plan": WRITE,
    "src/core/write/append": [*WRITE, "src/core/write/plan"],
    "src/core/write/convert": [*WRITE, "src/core/write/plan", "src/core/write/append"],
    "src/core/write/writer": [
        *WRITE, "src/core/write/plan", "src/core/write/append", "src/core/write/convert"
    ],
    "src/core/write/split": [*WRITE, "src/core/write/plan", "src/core/write/convert"],
    "src/core/edit": [
        *ENGINE, "editing.h", "src/core/read", "src/core/shards", "src/core/check",
        "src/core/write/plan", "src/core/write/append", "src/core/write/convert",
        "src/core/write/writer"
    ],
    "src/scan": ["heft_ext.h", "check.h", "src/base", "src/grammar", "src/core/read"],
    "src/sign": ["heft_ext.h", "sign.h", "src/base", "src/grammar", "src/core/read"],
    "src/share": [
        *ENGINE, "private.h", "share.h", "src/grammar", "src/core/read", "src/core/check",
        "src/core/write/plan", "src/core/write/convert"
    ],
    "src/delta": [
        *ENGINE, "check.h", "delta.h", "write.h", "src/grammar", "src/core/read",
        "src/core/check", "src/core/write/plan", "src/combine"
    ],
    "src/companion": [
        "heft_ext.h", "companion.h", "vocabulary.h", "src/base", "src/model", "src/grammar"
    ],
    "src/port_none": ["heft_ext.h", "src/base"],
    "src/without": [
        *WRITE, "gguf_texts.h", "src/core/write/plan", "src/core/write/convert", "src/simd"
    ],
    "src/move": [*ENGINE, "private.h", "write.h", "src/core/read", "src/core/write/plan"],
    "src/params": ["heft_ext.h", "params.h", "src/base", "src/scheme", "any"],
    "src/simd": ["private.h", "src/base", "src/model"],
    "src/folder": ["heft_ext.h", "src/base"],
    "src/port": [*HEADERS, "src/base", "any"],
    "src/port/system": PORT,
    "src/port/libraries": [*PORT, "src/port/system"],
    "src/port/folders": [*PORT, "src/folder", "src/port/system"],
    "src/port/save": SAVE,
    "src/local": [*SAVE, "src/port/save", "src/delta"],
    "src/port/remote": [*SAVE, "src/port/save", "src/local"],
    "src/port/serve": [*PORT, "src/port/system"],
    "cli": [*HEADERS, "cli/process", "cli/models", "cli/options", "cli/commands", "any"],
    "cli/text": [*HEADERS, "any"],
    "cli/process": [*HEADERS, "cli/text", "any"],
    "cli/models": [*HEADERS, "cli/text", "cli/process", "any"],
    "cli/options": [*HEADERS, "cli/text", "cli/process", "cli/models", "any"],
    "cli/values": [*HEADERS, "cli/text", "cli/process", "cli/models", "cli/options", "any"],
    "cli/commands": [
        *HEADERS, "cli/text", "cli/process", "cli/models", "cli/options", "cli/values", "any"
    ],
    "examples": [*PUBLIC, "any"],
    "web": [*PUBLIC, "any"],
}
# A family of formats may include the shared headers of formats, and no other family.
for family in sorted(p.name for p in (ROOT / "src/format").iterdir() if p.is_dir()):
    MAY_INCLUDE[f"src/format/{family}"] = [*MAY_INCLUDE["src/format"], "src/format"]
FREESTANDING = [
    "src/base", "src/model", "src/grammar", "src/format", "src/core/read", "src/core/shards",
    "src/core/check", "src/core/write/plan", "src/core/write/append", "src/core/write/convert",
    "src/core/write/writer", "src/core/write/split", "src/core/edit", "src/companion", "src/folder",
    "src/scheme", "src/logical", "src/map", "src/combine", "src/blend", "src/lora", "src/mix",
    "src/gguf", "src/scan", "src/sign", "src/share", "src/move", "src/port_none", "src/without"
]
INSTRUCTIONS = {"cpuid.h", "immintrin.h", "arm_neon.h"}  # only src/simd
EXTENDED = ("src/port", "src/local", "cli")  # may ask the C library for more than C11
EXTENSIONS = re.compile(
    r"_(GNU|DEFAULT|BSD|SVID|XOPEN|POSIX|POSIX_C|NETBSD|DARWIN_C)_SOURCE\b|__EXTENSIONS__\b")
# Files of cli with a state of the process, such as a terminal or signals; each says why. What the
# user asked for belongs in a session.
STATEFUL = {"call_filter", "folder_files", "interrupt", "kept_access", "message", "pager",
            "term", "textfile"}
C_HEADERS = {"stdint.h", "stddef.h", "stdbool.h", "stdarg.h", "limits.h", "string.h"}
CONDITIONS_IN = {"src/base/compiler.h", "include/heft/heft.h", "src/port/defaults.c",
                 "src/simd/instructions.h", "src/simd/look_up_instructions.h",
                 "src/simd/packed_instructions.h"}
MEM = {"memcpy", "memcmp", "memset", "memmove"}
SUPPLIED = {"heft_host_default", "heft_kernels_now"}  # by src/port, src/simd or src/port_none
# Functions that a format may call besides mem functions, by prefix: index, plan, grammars and
# src/base, but nothing that opens, reads or writes.
FORMAT_CALLS = re.compile(
    r"heft_(window|ix|meta|value|plan|dtype|block|cbor|json|cur|out|error|mem|arena|vec|sort|"
    r"siphash13|crc32|crc32c|blake3"
    r"|lit|str|utf8|is_ascii|hex|u64_text|f64_text|attrs|glob|vocab|zip|pickle|msgpack|tar|python"
    r"|names|protobuf|rank_name|torch_types)"
    r"(_|$)")


def sources(directory, *suffixes):
    return sorted(p for p in (ROOT / directory).glob("*") if p.suffix in suffixes)


def relative_name(path):
    return path.relative_to(ROOT).as_posix()


def layer_of(target):
    """Return the layer of an included name: a public header, a directory, or "any" (system)."""
    if target.startswith("heft/"):
        return target[5:]
    if "/" in target and (ROOT / "src" / target.rsplit("/", 1)[0]).is_dir():
        return "src/" + target.rsplit("/", 1)[0]
    if "/" in target and (ROOT / "cli" / target).is_file():
        return "cli/" + target.rsplit("/", 1)[0]
    return "any"


def include_faults():
    for directory, allowed in MAY_INCLUDE.items():
        for path in sources(directory, ".c", ".h"):
            for n, line in enumerate(path.read_text().splitlines(), 1):
                m = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
                if m and not may_include(path, directory, allowed, m[1]):
                    yield f"{relative_name(path)}:{n}: {directory} may not include {m[1]}"


def may_include(path, directory, allowed, target):
    if (path.parent / target).is_file() or layer_of(target) == directory:
        return True
    if target in INSTRUCTIONS:
        return directory == "src/simd"
    if target in C_HEADERS:
        return True
    return layer_of(target) in allowed or "src/" + target in allowed


def reachable(uses, start):
    """Return everything that `start` needs directly or indirectly."""
    found, left = set(), [start]
    while left:
        new = uses[left.pop()] - found
        found |= new
        left += new
    return found


def public_faults():
    """Yield public headers that include each other in a circle, includes of heft.h besides the
    element types, and includes of stable headers that are not stable."""
    texts = {name: (ROOT / "include/heft" / name).read_text() for name in HEADERS}
    uses = {n: set(re.findall(r"^#include <heft/(\w+\.h)>", t, re.M)) for n, t in texts.items()}
    yield from (f"{name} includes itself through other headers" for name in HEADERS
                if name in reachable(uses, name))
    yield from (f"heft.h includes {name}" for name in uses["heft.h"] - {"dtypes.h"})
    stable = {name for name, text in texts.items() if "Stability: stable." in text}
    yield from (f"{name} is stable, but includes {other}" for name in stable
                for other in uses[name] - stable)


def condition_faults():
    for directory in ["include/heft", *MAY_INCLUDE]:
        for path in sources(directory, ".c", ".h"):
            if relative_name(path) in CONDITIONS_IN:
                continue
            guard = None
            for n, line in enumerate(path.read_text().splitlines(), 1):
                m = re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b\s*(.*)", line)
                if not m or m[2].strip() == "__cplusplus":
                    continue
                if m[1] == "ifndef" and path.suffix == ".h" and guard is None:
                    guard = m[2]
                    continue
                where = f"{relative_name(path)}:{n}"
                yield (f"{where}: #{m[1]} {m[2]} belongs in compiler.h, *instructions.h or "
                       "port/defaults.c")


def atomic_faults():
    for directory in MAY_INCLUDE:
        for path in sources(directory, ".c", ".h"):
            for n, line in enumerate(path.read_text().splitlines(), 1):
                if relative_name(path) != "src/base/compiler.h" and re.search(
                        r"\b__(atomic|sync)_\w+", line):
                    where = f"{relative_name(path)}:{n}"
                    yield f"{where}: atomic operations of the compiler belong in compiler.h"


def may_extend(name):
    return name.startswith(tuple(d + "/" for d in EXTENDED))


def extension_faults(commands):
    """Yield sources and commands that define a macro like _GNU_SOURCE."""
    for directory in ["include/heft", *MAY_INCLUDE]:
        for path in sources(directory, ".c", ".h"):
            found = EXTENSIONS.search(path.read_text())
            if found and not may_extend(relative_name(path)):
                yield f"{relative_name(path)}: {found[0]} belongs in src/port, src/local or cli"
    for row in json.loads(pathlib.Path(commands).read_text()) if commands else []:
        path = pathlib.Path(row["directory"], row["file"]).resolve()
        name = relative_name(path) if ROOT in path.parents else ""
        found = EXTENSIONS.search(row["command"])
        if found and name.startswith(("src/", "web/", "examples/")) and not may_extend(name):
            yield f"{name} is compiled with {found[0]}, which is for src/port and cli"


def run_tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def unpack_archive(archive, into):
    """Return the objects of an archive as (directory of the source, path)."""
    names = run_tool("ar", "t", archive).split()
    found = []
    if pathlib.Path(archive).open("rb").read(8) == b"!<thin>\n":
        paths = [pathlib.Path(archive).parent / n for n in names]
        paths = [p if p.exists() else pathlib.Path(n) for p, n in zip(paths, names)]
    else:
        subprocess.run(["ar", "x", str(pathlib.Path(archive).resolve())], cwd=into, check=True)
        paths = [pathlib.Path(into, n) for n in names]
    for p in paths:
        layer = next((d for d in FREESTANDING if p.name.startswith(d.replace("/", "_") + "_")),
                     None)
        if layer:
            found.append((layer, p))
    return found


@functools.cache
def symbols(path):
    """Return (letter, name) of every symbol of an object."""
    return [tuple(line.split()[-2:]) for line in run_tool("nm", str(path)).splitlines()]


def call_faults(objects, defined):
    for directory, path in objects:
        for letter, name in symbols(path):
            if letter not in "Uvw" or name in MEM | SUPPLIED or name == "_GLOBAL_OFFSET_TABLE_":
                continue
            if name not in defined:
                yield f"{path.name}: calls {name}, which is not part of the core"
            elif (
                directory == "src/format"
                and "registry" not in path.name
                and not FORMAT_CALLS.match(name)
                and defined[name] != "src/format"
            ):
                yield f"{path.name}: a format may not call {name}"


def upward_faults(objects, defined):
    """Yield calls of an engine's part to a part above, whichever header declares the function."""
    for directory, path in objects:
        for letter, name in symbols(path):
            target = defined.get(name,
                                 "") if letter == "U" and directory.startswith("src/core/") else ""
            if target.startswith("src/core/") and target not in [
                    directory, *MAY_INCLUDE[directory]
            ]:
                yield f"{path.name}: calls {name} of {target}"


def data_faults(objects):
    allowed = re.compile(r"\.(data\.rel\.ro|rodata)")
    for _, path in objects:
        sections = re.findall(r"^\s*\d+\s+(\.\S+)\s+([0-9a-f]{8,})",
                              run_tool("objdump", "-h", str(path)), re.M)
        for name, size in sections:
            if re.match(r"\.(data|bss|tdata|tbss)", name) and not allowed.match(name) and int(
                    size, 16):
                yield f"{path.name}: {int(size, 16)} bytes in {name}, which can be written to"
        for letter, name in symbols(path):
            if letter == "C":
                yield f"{path.name}: {name} is common data"


def command_objects(commands):
    """Yield the objects of the command, but for its files with a state."""
    for row in json.loads(pathlib.Path(commands).read_text()) if commands else []:
        path = pathlib.Path(row["directory"], row.get("output", ""))
        source = pathlib.Path(row["file"]).stem
        if path.parent.name == "heft.p" and source not in STATEFUL and path.is_file():
            yield "cli", path


def name_faults(objects):
    for _, path in objects:
        for letter, name in symbols(path):
            if letter in "TDRBGSVW" and not name.startswith("heft_"):
                yield f"{path.name}: {name} links under a name of its own"


def dependencies(objects):
    """Return {object: objects that define the symbols it uses}."""
    defined = {n: p for _, p in objects for letter, n in symbols(p) if letter in "TDRBV"}
    return {
        p: {defined[n] for letter, n in symbols(p) if letter == "U" and n in defined}
        for _, p in objects
    }


def directory_of(path):
    """Return the directory of an object's source: src_format_numpy_npz_write.c.o ->
    src/format/numpy."""
    fits = [d for d in MAY_INCLUDE if path.name.startswith(d.replace("/", "_") + "_")]
    return max(fits, key=len)


def circle_faults(objects):
    uses = dependencies(objects)
    needs = {p: reachable(uses, p) for p in uses}
    files = collections.defaultdict(list)
    for p in uses:
        files[directory_of(p)].append(p)
    for directory, inside in sorted(files.items()):
        circles = {
            " ".join(sorted(q.name for q in needs[p] if p in needs[q])) for p in inside
            if p in needs[p]
        }
        yield from (f"{directory}: these need each other: {names}" for names in sorted(circles))


def object_checks(archive, commands):
    with tempfile.TemporaryDirectory() as scratch:
        objects = unpack_archive(archive, scratch)
        seen = collections.Counter(directory for directory, _ in objects)
        defined = {n: d for d, p in objects for letter, n in symbols(p) if letter in "TDRBV"}
        bare = [d for d in FREESTANDING
                if d not in ("src/port_none", "src/without") and not seen[d]]
        yield "the archive holds objects of every layer", [f"none of {d}" for d in bare]
        yield "calls stay inside the core", list(call_faults(objects, defined))
        yield "the engine's parts call downward", list(upward_faults(objects, defined))
        yield "no data that can be written to", list(data_faults(objects))
        yield "the command keeps what was asked in a session", list(
            data_faults(command_objects(commands)))
        yield "linked names begin with heft_", list(name_faults(objects))
        yield "no files need each other in a circle", list(circle_faults(objects))


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawTextHelpFormatter)
    args.add_argument("--objects", metavar="ARCHIVE")
    args.add_argument("--commands", metavar="FILE")
    a = args.parse_args()
    checks = [
        ("includes point downward", list(include_faults())),
        ("public headers include what they may", list(public_faults())),
        ("conditions stand where differences live", list(condition_faults())),
        ("atomic operations stand where differences live", list(atomic_faults())),
        ("only src/port and cli extend the C library", list(extension_faults(a.commands))),
    ]
    if a.objects:
        checks += object_checks(a.objects, a.commands)
    return tap.report(checks)


sys.exit(main())
