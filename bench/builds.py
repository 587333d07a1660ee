"""builds.py - figures of peers that environment variables name: programs that are built from
source, and the library of ggml."""
import contextlib
import filecmp
import os
import shutil
import sys
import tempfile

from harness import (BUILD, HEFT, file_system, has_program, measure_in_turns, read_numbers, seconds,
                     speed)
from indexes import MILLION, fastest, opened, tensor_count
from payloads import add_share, loading_speed

VARIABLES = {"safetensors": "HEFT_PEER_SAFETENSORS", "zt": "HEFT_PEER_ZT",
             "ggml": "HEFT_PEER_GGML"}
UNNAMED = ("peers: not measured; docs/performance.md says how to build and name programs: "
           + ", ".join(VARIABLES.values()))
SLOW = 5  # seconds; a slower peer is measured once, and not with more tensors
TO_ZTENSOR = ["convert", "--to", "ztensor", "--format-version", "2"]  # the only form zt writes
MEMORY = "/dev/shm"


def named():
    """Return {peer: program} of the variables in the environment; exit if a program is missing."""
    found = {peer: os.environ[name] for peer, name in VARIABLES.items() if os.environ.get(name)}
    for peer, path in found.items():
        if not (os.path.isfile(path) if peer == "ggml" else shutil.which(path)):
            kind = "library" if peer == "ggml" else "program"
            sys.exit(f"{VARIABLES[peer]}={path}: this file is not a {kind}; "
                     f"docs/performance.md says how to build the {kind}")
    return found


def ask(peer, *args):
    """Return the lines of numbers that the peer prints; exit if the peer fails. peer: a program, or
    a tuple of a program and its first arguments."""
    argv = [*peer, *args] if isinstance(peer, tuple) else [peer, *args]
    return read_numbers(*argv) or sys.exit(f"{' '.join(map(str, argv))}: failed")


# ---- open --------------------------------------------------------------------------------------


def add_opening(r, what, path, theirs, peer, rounds):
    """Add the ratio of opening; `theirs` returns the seconds of the peer."""
    took = measure_in_turns(rounds, {"heft": lambda: fastest(opened(path))[0], "peer": theirs})
    r.faster(what, took["heft"], took["peer"], peer, 5, own=([t * 1e3 for t in took["heft"]], "ms"))


def open_safetensors(r, inputs, peer, quick):
    """Add a row for a million tensors: a header of 91 MB. The core of safetensors accepts 100
    MB."""
    count = tensor_count(quick)
    path = inputs.index("safetensors", count)
    add_opening(r, f"open {count} tensors, safetensors", path,
                lambda: fastest(ask(peer, "open", path, 3))[0], "safetensors core",
                3 if quick else 5)
    inputs.drop(path)


def open_gguf(r, inputs, peer, quick):
    """Add a row for each number of tensors that ggml reads in acceptable time."""
    for count in (20_000,) if quick else (MILLION // 10, MILLION):
        path = inputs.index("gguf", count)
        once = ask(peer, "open", path, 1)[0][0]
        add_opening(r, f"open {count} tensors, gguf", path,
                    lambda path=path, once=once: once if once > SLOW else
                    ask(peer, "open", path, 1)[0][0], "ggml", 3)
        inputs.drop(path)
        if once > SLOW:
            print(f"  ggml took {once:.0f} s once; more tensors are not measured")
            return


# ---- load --------------------------------------------------------------------------------------


def load(r, inputs, fmt, peer, name, quick):
    """Add rows for reading all tensors into fresh memory; the peer has a single thread."""
    path = inputs.model(fmt, 144 if quick else 1008)

    def theirs():
        took, got = ask(peer, "load", path)[0]
        return got / took / 1e9

    took = measure_in_turns(3 if quick else 5, {
        "all": lambda: loading_speed(inputs, "heft:fresh", path),
        "one": lambda: loading_speed(inputs, "heft:fresh", path, "one"),
        "peer": lambda: inputs.stable_memory.run(theirs)})
    add_share(r, f"load, {fmt}", took["all"], took["peer"], name, None)
    add_share(r, f"load, {fmt}, 1 thread", took["one"], took["peer"], name, None)
    inputs.drop(path)


# ---- verify and convert ------------------------------------------------------------------------


def make_ztensor(inputs, source):
    path = inputs.path("canonical.zt")
    seconds(HEFT, *TO_ZTENSOR, "--no-sync", "--allow-loss", source, path)
    inputs.settle(path)
    return path


def verify_zt(r, inputs, peer, path, quick):
    """Add a row for the XXH3 of all parts; Heft has all processors, zt has a single thread."""
    took = measure_in_turns(3 if quick else 7, {"heft": lambda: seconds(HEFT, "verify", path),
                                                "zt": lambda: seconds(peer, "verify", path)})
    r.faster("verify, XXH3, ztensor 2", took["heft"], took["zt"], "zt", 1.5,
             own=(speed(os.path.getsize(path), took["heft"]), "GB/s"))


def convert_zt(r, inputs, peer, path, what, folder, options, limit, quick):
    """Add a row for a conversion into a new file of `folder`."""
    ours, theirs = f"{folder}/heft.zt", f"{folder}/zt.zt"
    runs = {"heft": [HEFT, *TO_ZTENSOR, *options, path, ours],
            "zt": [peer, "convert", path, theirs]}

    def settled(argv):
        inputs.drop(argv[-1])
        os.sync()  # keep freed blocks and pending writes out of this measurement
        return inputs.timed(*argv, targets=[argv[-1]])

    took = measure_in_turns(3 if quick else 5, {
        name: lambda argv=argv: settled(argv) for name, argv in runs.items()})
    r.faster(what, took["heft"], took["zt"], "zt", limit,
             own=(speed(os.path.getsize(path), took["heft"]), "GB/s"))
    if not filecmp.cmp(ours, theirs, shallow=False):
        print(f"  {what}: the files of heft and zt differ", file=sys.stderr)
    inputs.drop(ours, theirs)


def memory_folder(size):
    """Return a folder in memory, where waiting for the disk costs nothing; None without space."""
    if file_system(MEMORY) != "tmpfs" or shutil.disk_usage(MEMORY).free < 3 * size:
        return contextlib.nullcontext()
    return tempfile.TemporaryDirectory(dir=MEMORY)


def with_zt(r, inputs, peer, quick):
    """Add rows for verify and convert. zt always waits for the disk, so the rows without waiting
    have their outputs in memory."""
    source = inputs.model("safetensors", 144 if quick else 2016)
    path = make_ztensor(inputs, source)
    verify_zt(r, inputs, peer, path, quick)
    with memory_folder(os.path.getsize(path)) as memory:
        for what, from_path in (("safetensors to ztensor 2", source),
                                ("ztensor 2 to ztensor 2", path)):
            convert_zt(r, inputs, peer, from_path, f"{what}, synced", str(inputs.directory), [], 2,
                       quick)
            if memory:
                convert_zt(r, inputs, peer, from_path, f"{what}, into memory", memory,
                           ["--no-sync"], None, quick)
    inputs.drop(source, path)


# ---- the section -------------------------------------------------------------------------------


def missing(r, found):
    """Add a row for each peer that no variable names."""
    if "safetensors" not in found:
        r.missing("open and load, safetensors", "safetensors core", 5)
    if "zt" not in found:
        r.missing("verify", "zt", 1.5)
        r.missing("convert, synced", "zt", 2)
    if "ggml" not in found:
        r.missing("open and load, gguf", "ggml", 5)


def peers(r, inputs, formats, quick):
    """Peers that are built from source: the core of safetensors, zTensor's zt, and ggml."""
    found = named()
    if "safetensors" in found:
        open_safetensors(r, inputs, found["safetensors"], quick)
        load(r, inputs, "safetensors", found["safetensors"], "safetensors core", quick)
    if "zt" in found and "ztensor" in formats:
        with_zt(r, inputs, found["zt"], quick)
    if "ggml" in found and "gguf" in formats and has_program("ggml"):
        peer = (BUILD / "bench" / "ggml", found["ggml"])
        open_gguf(r, inputs, peer, quick)
        load(r, inputs, "gguf", peer, "ggml", quick)
    missing(r, found)
