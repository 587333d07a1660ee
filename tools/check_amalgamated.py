#!/usr/bin/env python3
"""check_amalgamated.py BUILD [--full]: make heft_core.c for one format and for all, and heft.c for
desktops, compile and use them.

Each heft_core.c is compiled as strict C11 by gcc and clang, for wasm32, and for a Cortex-M if
arm-none-eabi-gcc is installed (for all formats only with --full). The object must define no name
without the prefix heft_ and need only four mem functions. tests/amalgamated.c, as C and as C++,
must print the same with heft_core.c and with the library in BUILD. So must
tests/amalgamated_desktop.c with heft.c, and write the same file; --full optimises heft.c, for the
warnings that gcc finds only then. TAP on stdout."""
import concurrent.futures
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import boards
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRICT = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-c", "heft_core.c"]
# gcc needs a time for this warning that grows with the square of the lines: most of the time for
# large files. Every build has it for each source, and joining sources does not indent them.
LARGE = ["-Wno-misleading-indentation"]
MEM = {"memcpy", "memmove", "memset", "memcmp"}
# -fno-...: gcc and clang make calls of other functions out of loops and of memcmp.
GCC = ["-fno-tree-loop-distribute-patterns", "-fno-stack-protector"]
COMPILERS = {
    "gcc": ["gcc", *GCC],
    "clang": ["clang", "-fno-builtin-bcmp", "-fno-stack-protector"],
    "wasm32": ["clang", "--target=wasm32", "-ffreestanding"],
    "arm": ["arm-none-eabi-gcc", "-mcpu=cortex-m3", "-mthumb", "-ffreestanding", *GCC],
}
# Processors that can multiply and add in one step; the dialect of GNU allows it where C11 does not.
# These are the cheapest options with which each does it.
FUSING = {"gcc": ["-O1", "-fexpensive-optimizations", "-mfma"],
          "clang": ["-O0", "-mfma", "--target=x86_64-linux-gnu"]}
SELECTIONS = {"mag": "mag", "all": "all"}
# Symbols of compilers: the global offset table, and arithmetic that the processor lacks.
OWN = ("_GLOBAL_OFFSET_TABLE_", "__aeabi_", "__linear_memory", "__stack_pointer",
       "__indirect_function_table")


def run(*command, cwd=None):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                       cwd=cwd)
    return p.returncode, p.stdout, (p.stdout + p.stderr).splitlines()


def make(names, folder, *options):
    status, _, lines = run(sys.executable, ROOT / "tools/amalgamate.py", *options, names, folder)
    return lines if status else []


def check_symbols(obj):
    """Return complaints about the symbols of an object."""
    _, out, _ = run("llvm-nm", "--extern-only", obj)
    complaints = []
    for line in out.splitlines():
        kind, name = line.split()[-2:]
        if kind == "U" and name not in MEM and not name.startswith(OWN):
            complaints.append(f"it needs {name}")
        if kind != "U" and not name.startswith("heft_"):
            complaints.append(f"it defines {name}")
    return complaints


def check_compiler(name, selection, folder):
    obj = folder / f"{name}.o"
    status, _, lines = run(*COMPILERS[name], *STRICT, *LARGE, "-o", obj, cwd=folder)
    return lines if status else check_symbols(obj)


def check_rounding(name, folder):
    """Return the instructions that add a product which is not rounded: encoders would differ."""
    obj = folder / f"fused_{name}.o"
    status, _, lines = run(name, "-std=gnu11", *FUSING[name], "-c", "heft_core.c", "-o", obj,
                           cwd=folder)
    _, code, _ = run("llvm-objdump", "-d", obj)
    return lines if status else [line for line in code.splitlines() if "vfm" in line]


def check_program(selection, folder, build, models):
    """Yield (title, complaints) for the program in C and C++, with heft_core.c and the library."""
    program = ROOT / "tests/amalgamated.c"
    header = '-DHEADER="heft_core.h"'
    variants = {
        "library": ["gcc", "-DHEADER=<heft/all.h>", f"-I{ROOT}/include", program,
                    f"-L{build}", "-lheft", f"-Wl,-rpath,{build}"],
        "C": ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", header, f"-I{folder}", program,
              folder / "gcc.o"],
        "C++": ["g++", "-Wall", "-Wextra", "-Werror", header, f"-I{folder}", "-x", "c++", program,
                "-x", "none", folder / "gcc.o"],
    }
    printed = {}
    for name, command in variants.items():
        out = folder / f"program_{name}"
        status, _, lines = run(*command, "-o", out)
        if status:
            yield f"{selection}: a program in {name} is built", lines
            return
        printed[name] = [run(out, model)[::2] for model in models]
    for name in ("C", "C++"):
        wrong = [f"{m.name}: {a} but the library says {b}"
                 for m, a, b in zip(models, printed[name], printed["library"])
                 if a != b or a[0] or len(a[1]) < 2]
        yield f"{selection}: a program in {name} prints what it prints with the library", wrong


def check_selection(selection, folder, build, models):
    wrong = make(SELECTIONS[selection], folder)
    yield f"{selection}: heft_core.c and heft_core.h are made", wrong
    if wrong:
        return
    again = folder / "again"
    same = make(SELECTIONS[selection], again) or [
        f"{n} differs" for n in ("heft_core.c", "heft_core.h")
        if (folder / n).read_bytes() != (again / n).read_bytes()
    ]
    yield f"{selection}: a second run makes the same bytes", same
    names = [n for n, command in COMPILERS.items() if shutil.which(command[0])
             and (n != "arm" or selection == "mag" or "--full" in sys.argv)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, found in zip(names, pool.map(
                lambda n: check_compiler(n, selection, folder), names)):
            yield f"{selection}: {name} compiles it", found
    if selection == "mag" and platform.machine() == "x86_64":
        for name in FUSING:
            yield f"{name} rounds products before it adds them", check_rounding(name, folder)
    if (folder / "gcc.o").exists():
        yield from check_program(selection, folder, build, models)


def convert_all(program, models, folder):
    """Return by model what the program prints, and the file that it writes."""
    folder.mkdir()
    out = {m: folder / f"{m.name}.safetensors" for m in models}
    printed = {m: run(program, m, out[m])[::2] for m in models}
    return {m: (*printed[m], out[m].exists() and out[m].read_bytes()) for m in models}


def check_desktop(folder, build, models):
    """Yield (title, complaints) for heft.c and a program that opens paths and writes files."""
    wrong = make("all", folder, "--desktop")
    yield "heft.c and heft.h are made", wrong
    program, results_of = ROOT / "tests/amalgamated_desktop.c", {}
    header = '-DHEADER="heft.h"'
    strict = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", *LARGE]
    variants = {
        "library": ["gcc", "-DHEADER=<heft/all.h>", f"-I{ROOT}/include", program, f"-L{build}",
                    "-lheft", f"-Wl,-rpath,{build}"],
        "gcc": ["gcc", *strict, header, f"-I{folder}", program, folder / "gcc.o", "-lm"],
        "clang": ["clang", *strict, header, f"-I{folder}", program, folder / "clang.o", "-lm",
                  "-lz"],
    }
    objects = {"gcc": ["-O2"] if "--full" in sys.argv else [], "clang": ["-DHEFT_HAVE_ZLIB"]}
    for name, command in variants.items():
        status, lines = bool(wrong), wrong
        if not status and name in objects:
            status, _, lines = run(name, *strict, *objects[name], "-pthread", "-c",
                                   folder / "heft.c", "-o", folder / f"{name}.o")
        if not status:
            status, _, lines = run(*command, "-pthread", "-o", folder / name)
        yield f"desktop: {name} builds a program", lines if status else []
        if not status:
            results_of[name] = convert_all(folder / name, models, folder / f"of_{name}")
    for name in results_of:
        differ = [f"{m.name}: {a[:2]} but the library says {results_of['library'][m][:2]}"
                  for m, a in results_of[name].items()
                  if a != results_of["library"][m] or a[0] or not a[2]]
        yield f"desktop: the program of {name} converts as the library does", differ


def results(folder, build):
    models = boards.write_models(folder)
    yield from check_desktop(folder / "desktop", build, models)
    for selection in SELECTIONS:
        own = folder / f"core_{selection}"
        readable = [m for m in models if selection in ("all", m.name)]
        yield from check_selection(selection, own, build, readable)
    yield "a format that does not exist is refused", [] if make("magma", folder) else ["accepted"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder), pathlib.Path(sys.argv[1]).resolve()))


sys.exit(main())
