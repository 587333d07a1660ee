#!/usr/bin/env python3
"""build_web.py [DIR]: build the npm package in DIR (build-web).

  DIR/package          the package: modules, declarations, heft.wasm, heft-simd.wasm, heft-full.wasm
  DIR/libheft-heft-VERSION.tgz the same, packed by npm

The core is compiled for wasm32 without a C library, as check_freestanding.py does, and linked with
the functions of web/*.c. The writers of formats are left out: the linker may leave undefined only
functions that the sources left out define."""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import gen_block_grids

import web_inline

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "model", "grammar", "format", "core", "companion", "scheme", "port_none"]
# Sources that only write files. Functions of these files that readers call are not possible: the
# linker reports them.
LEFT_OUT = re.compile(r"core/edit/|core/write/(?!convert/dedup)|format/.*_(write|plan|losses)\.c$|"
                      r"format/losses\.c$|model/block_grids\.c$")
# Functions that only writers call, directly or through the table of a format.
WRITER = re.compile(r"heft_plan_|heft_\w+_plan(_|$)|heft_\w+_write_(header|record_header|trailer)$|"
                    r"heft_(zt2|torch)_sharding$|heft_shard_index_put(_name)?$|"
                    r"heft_mag_put_checked$|heft_loss")
# Formats that would make the small modules larger than their bound.
LARGE_FORMATS = {"keras", "onnx"}
# Sources that run for every byte or tensor: compiled for speed, the rest for size.
FAST = re.compile(r"src/grammar/json(_u64)?\.c$|src/format/safetensors/safetensors_header|"
                  r"web/web_columns")
# In code for size vectors stay in memory, which is twice as slow. With -ffreestanding each memcpy()
# of a vector is a call: a quarter of the time. A higher threshold for inlining costs 700 bytes.
VECTORS = re.compile(r"src/base/blake3\.c$")
IN_REGISTERS = "-O2 -Dmemcpy=__builtin_memcpy -mllvm -inline-threshold=50"
FLAGS = ["--target=wasm32", "-nostdlib", "-std=c11", "-flto", "-ffreestanding",
         "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-mbulk-memory",
         "-msign-ext", "-mnontrapping-fptoint", "-Wall", "-Wextra", "-Werror", "-Wconversion",
         "-Wshadow", "-Wvla", "-Wstrict-prototypes", "-DNDEBUG", "-DHEFT_NO_THREADS"]
# Inlined copies cost 2 % of the size.
SMALL = "-Oz -mllvm -inline-threshold=-30"
LINK = ["--no-entry", "--gc-sections", "--lto-O2", "-O2", "--strip-all", "--error-limit=0",
        "-z", "stack-size=262144", "--export=__heap_base", "--global-base=1024", "--import-memory",
        "--initial-memory=2097152",  # the pages that web/core.mjs has for a new instance
        # Inlined copies, pointers that loops advance, and loads that are moved to other paths cost
        # 3 % of the size. Functions of one caller are inlined all the same.
        "-mllvm", "-inline-threshold=-30", "-mllvm", "-disable-lsr", "-mllvm", "-enable-pre=false",
        "-mllvm", "-enable-load-pre=false"]
# No data are below the global base, so that no valid address wraps around when wasm-opt moves an
# addition of less than 1024 into the offset of a load.
OPTIMISE = ["-O2", "--flatten", "--rereloop", "-Oz", "-Oz", "--converge", "--low-memory-unused",
            "--strip-debug", "--strip-producers", "--coalesce-locals-learning", "-Oz"]
FEATURES = ["--enable-bulk-memory", "--enable-sign-ext", "--enable-nontrapping-float-to-int",
            "--enable-mutable-globals"]
# Replaces src/base/crc_tables.h. The tables of half bytes are for small builds only.
CRC_TABLES = """#include <stdint.h>
enum { CRC_SLICES = 8 };
extern uint32_t ieee_tables[CRC_SLICES][256], castagnoli_tables[CRC_SLICES][256];
static const uint32_t ieee_halves[16], castagnoli_halves[16];
"""
# A module: flags of the compiler and of wasm-opt; the full one has all formats, and the functions
# of web/full.
Variant = collections.namedtuple("Variant", "flags features is_full", defaults=[False])
LEAN = "-DHEFT_LEAN"
# The modules have code of the header of xxHash, whose licence goes with it.
XXHASH_LICENCE = pathlib.Path("/usr/share/doc/libxxhash-dev/copyright")
VARIANTS = {"heft": Variant([LEAN], []),
            "heft-simd": Variant([LEAN, "-msimd128"], ["--enable-simd"]),
            "heft-full": Variant([], [], True)}


def version():
    text = (ROOT / "meson.build").read_text()
    return re.search(r"version: '([^']+)'", text)[1]


def sources(is_full):
    """Return the sources of a module."""
    layers = [*LAYERS, "logical"] if is_full else LAYERS
    found = sorted(p for layer in layers for p in (ROOT / "src" / layer).rglob("*.c")
                   if is_full or p.parent.name not in LARGE_FORMATS)
    read = [p for p in found if not LEFT_OUT.search(p.relative_to(ROOT / "src").as_posix())]
    own = [p for folder in ("web", "web/full")[:1 + is_full]
           for p in sorted((ROOT / folder).glob("*.c"))]
    return [*read, *own]


def object_name(variant, source):
    return f"{variant}/" + source.relative_to(ROOT).as_posix().replace("/", "_")[:-2] + ".o"


def ninja_file(into):
    """Write build.ninja; the build compiles every variant."""
    ccache = "ccache " if shutil.which("ccache") else ""
    xxhash = "/usr/include" if pathlib.Path("/usr/include/xxhash.h").exists() else "."
    includes = f"-Iinclude -I{ROOT}/include -I{ROOT}/src -isystem {ROOT}/src/port_none/libc"
    web = f"-I{ROOT}/web -I{ROOT}/include -isystem {ROOT}/web/libc " \
        f"-isystem {ROOT}/src/port_none/libc"
    lines = [f"rule cc\n  command = {ccache}clang {' '.join(FLAGS)} $flags -MD -MF $out.d "
             "-c $in -o $out\n  depfile = $out.d\n  deps = gcc\n"]
    # xxhash.h is copied, because /usr/include has the headers of the system's C library.
    # The tables of CRCs are a third of the constant data and hardly compress: the module computes
    # the tables when it starts (web/web_crc_tables.c).
    (into / "include/base").mkdir(parents=True, exist_ok=True)
    (into / "include/base/crc_tables.h").write_text(CRC_TABLES)
    # The code books likewise (web/web_block_grids.c).
    (into / "include/model").mkdir(parents=True, exist_ok=True)
    (into / "include/model/block_grids.h").write_text(
        (ROOT / "src/model/block_grids.h").read_text().replace("extern const", "extern"))
    (into / "include/block_bits.h").write_text(gen_block_grids.bits_header())
    (into / "small/format").mkdir(parents=True, exist_ok=True)
    rows = (ROOT / "src/format/formats.def").read_text().splitlines(keepends=True)
    (into / "small/format/formats.def").write_text(
        "".join(r for r in rows if re.match(r"X\((\w+)", r)[1] not in LARGE_FORMATS))
    lines.append(f"rule copy\n  command = cp $in $out\nbuild include/xxhash.h: copy "
                 f"{xxhash}/xxhash.h\n")
    targets = []
    for variant, (flags, _, is_full) in VARIANTS.items():
        for p in sources(is_full):
            name = p.relative_to(ROOT).as_posix()
            in_registers = "-msimd128" in flags and VECTORS.search(name)
            level = IN_REGISTERS if in_registers else "-O2" if FAST.search(name) else SMALL
            where = web + " -isystem include" if name.startswith("web/") else includes
            where = where if is_full else "-Ismall " + where
            targets.append(object_name(variant, p))
            lines.append(f"build {targets[-1]}: cc {p} | include/xxhash.h\n"
                         f"  flags = {level} {' '.join(flags)} {where}\n")
    lines.append(f"default {' '.join(targets)}\n")
    (into / "build.ninja").write_text("\n".join(lines))


def undefined(into, objects):
    """Try to link; return the undefined symbols and other messages."""
    p = subprocess.run(["wasm-ld", *LINK, "--allow-undefined-file=imports.txt",
                        "-o", "try.wasm", *objects], cwd=into, capture_output=True, text=True,
                       check=False)
    names = set(re.findall(r"undefined symbol: (\w+)", p.stderr))
    other = [line for line in p.stderr.splitlines() if "error:" in line
             and "undefined symbol" not in line]
    return names, other


def link(into, variant, features, is_full):
    objects = [object_name(variant, p) for p in sources(is_full)]
    (into / "imports.txt").write_text("")
    names, other = undefined(into, objects)
    strange = sorted(n for n in names if not WRITER.match(n))
    if strange or other:
        sys.exit("\n".join([f"{variant}: undefined: {n}" for n in strange] + other))
    raw, best = into / f"{variant}.raw.wasm", into / f"{variant}.wasm"
    subprocess.run(["wasm-ld", *LINK, "--unresolved-symbols=ignore-all", "-o", str(raw), *objects],
                   cwd=into, check=True)
    subprocess.run(["wasm-opt", *OPTIMISE, *FEATURES, *features, str(raw), "-o", str(best)],
                   check=True)


def repository():
    """Return the address that the checkout was cloned from, if it is a public one."""
    p = subprocess.run(["git", "config", "remote.origin.url"], cwd=ROOT, capture_output=True,
                       text=True, check=False)
    address = p.stdout.strip()
    return address if re.match(r"(git\+)?https://[\w.-]+\.\w+/", address) else None


def assemble(into):
    """Copy the files of the package to DIR/package."""
    package = into / "package"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir()
    for p in sorted((ROOT / "web").iterdir()):
        if p.suffix in {".mjs", ".ts", ".md"}:
            shutil.copy(p, package)
    for variant in VARIANTS:
        shutil.copy(into / f"{variant}.wasm", package)
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, package)
    if XXHASH_LICENCE.exists():
        shutil.copy(XXHASH_LICENCE, package / "libxxhash-dev.txt")
    about = json.loads((ROOT / "web/package.json").read_text())
    about["version"] = version()
    if repository():
        about["repository"] = {"type": "git", "url": repository(), "directory": "web"}
    (package / "inline_files.mjs").write_text(web_inline.module(package))
    (package / "inline_full.mjs").write_text(web_inline.full_module(package))
    (package / "package.json").write_text(json.dumps(about, indent=2) + "\n")


def pack(into):
    for old in into.glob("*.tgz"):
        old.unlink()
    if shutil.which("npm"):
        subprocess.run(["npm", "pack", "--silent", "--pack-destination", str(into)],
                       cwd=into / "package", check=True, stdout=subprocess.DEVNULL)


def main():
    into = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build-web").resolve()
    into.mkdir(parents=True, exist_ok=True)
    ninja_file(into)
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    subprocess.run(["ninja", "-C", str(into), "-j", jobs, "--quiet"], check=True)
    for variant, (_, features, is_full) in VARIANTS.items():
        link(into, variant, features, is_full)
    assemble(into)
    pack(into)
    print(into / "package")


if __name__ == "__main__":
    main()
