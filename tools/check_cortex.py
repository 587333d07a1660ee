#!/usr/bin/env python3
"""check_cortex.py DIR [--write]: run examples/board/network.c on emulated boards, and measure.

The core is compiled as a small build for Cortex-M3 and Cortex-M7, with objects in DIR, and linked
with a model of 64 tensors in flash memory: once for each format, and once with all formats whose
tensors can be used in place. qemu-system-arm runs the programs. Each must print the outputs that
Python computes. Code, memory of the index and stack are compared with the bounds; with --write the
table in docs/boards.md is replaced. TAP on stdout; exit status 77 if programs are missing."""
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

import boards
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/boards.md"
BEGIN, END = "<!-- figures: written by tools/check_cortex.py -->", "<!-- end of figures -->"
# core: (flags, machine of qemu-system-arm)
CORES = {
    "Cortex-M3": (["-mcpu=cortex-m3", "-mthumb"], "mps2-an385"),
    "Cortex-M7": (["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"],
                  "mps2-an500"),
}
FLAGS = [
    "-std=c11", "-Os", "-DHEFT_SMALL", "-ffreestanding", "-ffunction-sections", "-fdata-sections",
    "-fvisibility=hidden", "-fno-tree-loop-distribute-patterns", "-mno-unaligned-access", "-Wall",
    "-Wextra", "-Wconversion", "-Wshadow", "-Werror",
    f"-I{ROOT}/include", f"-I{ROOT}/src", "-isystem", f"{ROOT}/src/port_none/libc"
]
# Folders with all code that a program can need to open files in place; the linker drops the rest.
FOLDERS = ["base", "model", "grammar", "core/read", "port_none"]
# All formats except PyTorch and Burn records: no tensor of a file can be used in place there.
ALL = ["burnpack", "mag", "gptrs_checkpoint", "gptrs_archive", "safetensors", "embd", "npy", "npz",
       "gguf", "ztensor"]
PROGRAM = ["network", "run_network", "print", "memory", "cortex_m"]
CODE_ONE, CODE_ALL, RAM = 48 << 10, 160 << 10, 8 << 10
GCC = ["ccache", "arm-none-eabi-gcc"] if shutil.which("ccache") else ["arm-none-eabi-gcc"]


def run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                       timeout=300)
    return p.returncode, p.stdout, (p.stdout + p.stderr).splitlines()


class Failure(Exception):
    """A command failed; the argument is its output."""


def require(*command):
    status, out, lines = run(*command)
    if status:
        raise Failure([" ".join(str(c) for c in command), *lines])
    return out


# ---- building -----------------------------------------------------------------------------------

def rows():
    """Return the lines of formats.def by name."""
    text = (ROOT / "src/format/formats.def").read_text()
    return {m[1]: m for m in re.finditer(r"^X\((\w+), ([^)]*)\)$", text, re.M)}


def sources():
    found = [p for folder in FOLDERS for p in sorted((ROOT / "src" / folder).rglob("*.c"))]
    formats = {ROOT / "src/format" / f for name in ALL for f in rows()[name][2].split()}
    return found + sorted(formats)


def compile_all(core, folder):
    """Compile the core and the example for one processor; return the archive of the core."""
    flags = [*GCC, *CORES[core][0], *FLAGS]
    folder.mkdir(parents=True, exist_ok=True)
    library = sources()
    example = [ROOT / "examples/board" / f"{n}.c" for n in PROGRAM]
    extra = [ROOT / "tests/board_unaligned.c"]

    def compile_one(source):
        out = folder / f"{source.stem}.o"
        require(*flags, f"-I{ROOT}/examples/board", "-c", source, "-o", out)
        return out

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, [*library, *example, *extra]))
    archive = folder / "core.a"
    archive.unlink(missing_ok=True)
    require("arm-none-eabi-ar", "rcs", archive, *objects[:len(library)])


def link(core, folder, name, formats, model, program):
    """Link a program whose registry has `formats`, with the file `model`; return the path."""
    flags = [*GCC, *CORES[core][0], *FLAGS]
    own = folder / name
    (own / "format").mkdir(parents=True, exist_ok=True)
    (own / "format/formats.def").write_text("".join(f"{rows()[f][0]}\n" for f in formats))
    require(*flags[:-4], f"-I{own}", *flags[-4:], "-c", ROOT / "src/format/registry.c", "-o",
            own / "registry.o")
    (own / "model.s").write_text(f'.section .model,"a"\n.balign 64\n.global board_model\n'
                                 f'board_model: .incbin "{model}"\nboard_end:\n.balign 4\n'
                                 ".global board_model_bytes\n"
                                 "board_model_bytes: .word board_end - board_model\n")
    require(*GCC, *CORES[core][0], "-c", own / "model.s", "-o", own / "model.o")
    out = own / "board.elf"
    require(GCC[-1], *CORES[core][0], "-nostdlib", "-Wl,--gc-sections",
            f"-Wl,-Map={own}/board.map", "-T", ROOT / "examples/board/cortex_m.ld",
            *(folder / f"{p}.o" for p in program), own / "registry.o", own / "model.o",
            folder / "core.a", "-lgcc", "-o", out)
    return out


# ---- running ------------------------------------------------------------------------------------

def emulate(core, program):
    return run("qemu-system-arm", "-M", CORES[core][1], "-display", "none", "-monitor", "none",
               "-serial", "none", "-semihosting-config", "enable=on,target=native", "-kernel",
               program)


def sections(program):
    """Return (bytes of code and constants, bytes of static data)."""
    listed = require("arm-none-eabi-size", "-A", program)
    found = dict(re.findall(r"^\.?(\S+)\s+(\d+)", listed, re.M))
    size = {k: int(v) for k, v in found.items()}
    return (size["code"] + size.get("ARM.exidx", 0) + size.get("data", 0),
            size.get("data", 0) + size["bss"])


def measure(core, program):
    """Run a program; return (figures, complaints)."""
    status, _, lines = emulate(core, program)
    got = dict(line.split(" ", 1) for line in lines if " " in line)
    want = {"tensors": "64", "outputs": " ".join(boards.expected_outputs())}
    wrong = [f"{k}: {got.get(k)}, not {v}" for k, v in want.items() if got.get(k) != v]
    if status or wrong or "stack" not in got:
        return None, [f"exit status {status}", *wrong, *lines]
    code, static = sections(program)
    # The block of memory for the index is static; only the used bytes count.
    block = int(got["block"])
    ram = int(got["memory"]) + int(got["stack"]) + static - block
    return {"code": code, "index": int(got["memory"]), "stack": int(got["stack"]), "ram": ram}, []


def over(figures, code):
    return [f"{figures[k]} bytes of {k}, at most {most} are allowed"
            for k, most in (("code", code), ("ram", RAM)) if figures[k] > most]


def check_core(core, folder, models):
    """Yield (title, complaints, row): row is (core, formats, figures), or None."""
    compile_all(core, folder)
    yield f"the core compiles for {core}", [], None
    trap = link(core, folder, "unaligned", ["mag"], models[0],
                ["board_unaligned", "print", "memory", "cortex_m"])
    status, _, lines = emulate(core, trap)
    faults = status == 1 and lines == ["fault"]
    yield f"an unaligned access faults on {core}", [] if faults else lines, None
    for model in models:
        program = link(core, folder, model.name, [model.name], model, PROGRAM)
        figures, wrong = measure(core, program)
        yield (f"{model.name} on {core}: the network runs in place, within the bounds",
               wrong or over(figures, CODE_ONE), (core, model.name, figures))
    for model in models:
        program = link(core, folder, f"all_{model.name}", ALL, model, PROGRAM)
        figures, wrong = measure(core, program)
        yield (f"{model.name} with all formats on {core}", wrong or over(figures, CODE_ALL),
               (core, f"all {len(ALL)}, {model.name} opened", figures))


def collect(core, folder, models):
    try:
        return list(check_core(core, folder, models))
    except Failure as e:
        return [(f"the programs for {core} are built", e.args[0], None)]


# ---- the page -----------------------------------------------------------------------------------

def table(found):
    version = require("arm-none-eabi-gcc", "-dumpversion").strip()
    lines = [f"Bytes, compiled by gcc {version} with `-Os`.", "",
             "| processor | formats | code and constants | index | stack | all memory |",
             "|---|---|---:|---:|---:|---:|"]
    for core, name, f in found:
        lines.append(f"| {core} | {name} | {f['code']:,} | {f['index']:,} | {f['stack']:,} | "
                     f"{f['ram']:,} |")
    return "\n".join(lines)


def write_page(found):
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{rest.split(END)[1]}")


def main():
    if not shutil.which("qemu-system-arm") or not shutil.which("arm-none-eabi-gcc"):
        print("1..0 # SKIP qemu-system-arm or gcc-arm-none-eabi is not installed")
        return 77
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    models = boards.write_models(folder)
    results = [r for core in CORES for r in collect(core, folder / core, models)]
    status = tap.report((title, wrong) for title, wrong, _ in results)
    if not status and "--write" in sys.argv[2:]:
        write_page([row for _, _, row in results if row])
    return status


sys.exit(main())
