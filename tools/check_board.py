#!/usr/bin/env python3
"""check_board.py DIR: build and run examples/board/list.c without a C library, for x86-64 and i386.

A model is linked as an array of bytes, and the core is the object that check_freestanding.py left
in DIR/native and DIR/m32. For wasm32 the program is only compiled. The memory that the program
needs is checked. A kernel without programs for i386 needs qemu-i386. TAP on stdout."""
import errno
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/py"))
from gen_burnpack import Pack, few  # noqa: E402

FLAGS = [
    "-std=c11", "-O2", "-ffreestanding", "-nostdlib", "-Wall", "-Wextra", "-Werror",
    f"-I{ROOT}/include", "-isystem", f"{ROOT}/src/port_none/libc"
]
# No stack canaries and no relocation tables: these need an operating system.
GCC = ["-fno-pic", "-no-pie", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns"]
TARGETS = {"x86_64": ("native", ["gcc", "-m64", *GCC]), "i386": ("m32", ["gcc", "-m32", *GCC])}
WASM = ["clang", "--target=wasm32"]
MEM = {"memcpy", "memmove", "memset", "memcmp"}
MEMORY = 64 << 10


def run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return p.returncode, p.stdout, (p.stdout + p.stderr).splitlines()


def run_program(name, program):
    """Run a program for the processor "name", with QEMU where the kernel has no such programs."""
    try:
        return run(program)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    if not shutil.which(f"qemu-{name}"):
        return 1, "", [f"the kernel cannot run it; install qemu-user, which has qemu-{name}"]
    return run(f"qemu-{name}", program)


def model_source(data):
    rows = ",\n".join(", ".join(str(b) for b in data[i:i + 24]) for i in range(0, len(data), 24))
    return (
        "#include <stddef.h>\n#include <stdint.h>\nextern const uint8_t board_model[];\nextern "
        "const size_t board_model_bytes;\n"
        f"_Alignas(64) const uint8_t board_model[] = {{\n{rows}}};\nconst size_t "
        f"board_model_bytes = sizeof board_model;\n"
    )


def expected(pack, data):
    """Return the expected output without the line about memory."""
    start = len(data) - max(end for _, end in pack.places.values())
    for name, dtype, shape, content in pack.tensors:
        total = 0
        for byte in content:
            total = (total * 31 + byte) % 2**32
        offset = start + pack.places[name][0]
        yield f"{name} {dtype} {'x'.join(map(str, shape))} at {offset} sum {total}"
    yield "0 faults"


def build(compiler, sources, folder):
    """Compile the sources; return (complaints, objects)."""
    objects, complaints = [], []
    for source in sources:
        objects.append(folder / f"{source.stem}.o")
        status, _, lines = run(*compiler, *FLAGS, "-c", source, "-o", objects[-1])
        complaints += lines if status else []
    return complaints, objects


def check_native(name, compiler, core, folder, want):
    own = [
        *(ROOT / "examples/board" / f"{f}.c" for f in ("list", "print", "memory")),
        ROOT / f"tests/board_{name}.c", folder / "model.c"
    ]
    into, program = folder / name, folder / f"board_{name}"
    into.mkdir()
    wrong, objects = build(compiler, own, into)
    if not wrong:
        status, _, lines = run(*compiler, "-nostdlib", "-static", *objects, core, "-o", program)
        wrong = lines if status else []
    yield f"list.c and the core link for {name}, without any library", wrong
    if wrong:
        return
    status, out, lines = run_program(name, program)
    got = out.splitlines()
    memory = re.fullmatch(r"0 faults, (\d+) bytes of memory", got[-1]) if got else None
    got = got[:-1] + ["0 faults"] if memory else got
    yield f"it lists the model on {name}", [] if status == 0 and got == want else [
        f"exit status {status}", *lines
    ]
    fits = memory and 0 < int(memory[1]) <= MEMORY
    yield f"in no more than 64 KiB on {name}", [] if fits else lines


def check_wasm(folder):
    wrong, objects = build(WASM, [ROOT / "examples/board/list.c"], folder)
    yield "list.c compiles for wasm32", wrong
    if wrong:
        return
    _, out, _ = run("llvm-nm", "--undefined-only", objects[0])
    names = {line.split()[-1] for line in out.splitlines()}
    foreign = sorted(n for n in names - MEM if not n.startswith(("heft_", "board_", "print", "__")))
    yield "and needs the library, the board, and functions for memory", [
        f"it also needs {n}" for n in foreign
    ]


def results(folder):
    pack = Pack(few(), metadata={"purpose": "a board"})
    data = pack.bytes()
    (folder / "model.c").write_text(model_source(data))
    for name, (target, compiler) in TARGETS.items():
        yield from check_native(name, compiler, pathlib.Path(sys.argv[1], target, "heft.o"), folder,
                                list(expected(pack, data)))
    yield from check_wasm(folder)


def main():
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


sys.exit(main())
