#!/usr/bin/env python3
"""check_freestanding.py m32|wasm32|native [DIR]: compile the core for a target without a C library.

The objects are linked into one object. Its only undefined symbols must be four mem functions. DIR
keeps the objects; check_board.py links DIR/heft.o. TAP on stdout."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "model", "grammar", "format", "core", "companion", "folder", "scheme",
          "logical", "map", "combine", "blend", "delta", "lora", "mix", "gguf", "scan", "sign",
          "share", "move", "port_none"]
MEM = {"memcpy", "memcmp", "memset", "memmove"}
# Symbols that the tool chain itself leaves undefined; no library defines them.
MACHINE = {
    "__linear_memory", "__stack_pointer", "__indirect_function_table", "_GLOBAL_OFFSET_TABLE_"
}
FLAGS = ["-std=c11", "-ffreestanding", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
# 6 KiB of stack: hashing a model needs two BLAKE3 states.
FLAGS += ["-Wconversion", "-Wshadow", "-Wvla", "-Wstrict-prototypes", "-Wstack-usage=6144"]
# No stack canaries and no relocation tables: these need an operating system.
GCC = ["-nostdlib", "-fno-pic", "-fno-stack-protector"]
# Native objects are optimised like those of users, for the bound on the stack. Others show the
# names that a target needs; ./dev web and ./dev everywhere optimise for such targets.
# target: (compiler with flags, linker, symbol lister)
TARGETS = {
    "native": (["gcc", "-m64", "-O2", *GCC], ["ld", "-r"], ["nm"]),
    "m32": (["gcc", "-m32", "-O1", *GCC], ["ld", "-r", "-m", "elf_i386"], ["nm"]),
    "wasm32": (["clang", "--target=wasm32", "-O0", "-nostdlib"], ["wasm-ld", "-r"], ["llvm-nm"]),
}


def run(*command):
    p = subprocess.run(command, capture_output=True, text=True, check=False)
    return p.returncode, p.stdout + p.stderr


def compile_one(compiler, source, into):
    obj = pathlib.Path(into, f"{source.parent.name}_{source.stem}.o")
    includes = ["-I" + str(ROOT / "include"), "-I" + str(ROOT / "src")]
    bare = ["-isystem", str(ROOT / "src/port_none/libc")]
    flags = [f for f in FLAGS if compiler[0] == "gcc" or not f.startswith("-Wstack")]
    status, text = run(*compiler, *flags, *includes, *bare, "-c", str(source), "-o", str(obj))
    return obj, status, text


def check(target, into):
    """Yield (title, complaints)."""
    compiler, linker, lister = TARGETS[target]
    whole = pathlib.Path(into, "heft.o")
    whole.unlink(missing_ok=True)
    sources = sorted(p for layer in LAYERS for p in (ROOT / "src" / layer).rglob("*.c"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda s: compile_one(compiler, s, into), sources))
    broken = [text for _, status, text in built if status]
    yield f"{len(sources)} files compile for {target}", "\n".join(broken).splitlines()
    if broken:
        return
    status, text = run(*linker, "-o", str(whole), *(str(obj) for obj, _, _ in built))
    yield f"they link into one object for {target}", text.splitlines() if status else []
    if status:
        return
    _, text = run(*lister, str(whole))
    wanted = {line.split()[-1] for line in text.splitlines() if re.search(r"\bU \S+$", line)}
    foreign = sorted(wanted - MEM - MACHINE)
    yield f"it needs four mem functions for {target}", [f"it also needs {n}" for n in foreign]


def main():
    target = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        into = sys.argv[2] if len(sys.argv) > 2 else scratch
        pathlib.Path(into).mkdir(parents=True, exist_ok=True)
        return tap.report(check(target, into))


sys.exit(main())
