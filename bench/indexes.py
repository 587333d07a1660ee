"""indexes.py - figures that depend on the number of tensors."""
import os
import statistics

from harness import BUILD, GIB, HEFT, MIB, has_program, program, seconds, measure_in_turns
from inputs import write_gguf

# formats whose index needs little decoding
BARE_FORMATS = {"mag", "gptrs-archive", "gptrs-checkpoint"}
TREE_FORMATS = {
    "safetensors": ("json", "jansson", 20), "burnpack": ("cbor", "libcbor", 10),
    "ztensor": ("cbor", "libcbor", 10)
}  # parser of the same header, peer, required ratio
SLOW_FORMATS = {"npz"}  # each tensor needs a read of the member's header
MEMORY = 150  # bytes per tensor
MILLION = 1_000_000


def tensor_count(quick):
    return MILLION // 10 if quick else MILLION


def selected_formats(formats, quick):
    """Return the formats to measure; a quick run uses formats with a limit."""
    return [fmt for fmt in formats if not quick or fmt in BARE_FORMATS or fmt in TREE_FORMATS]


# A virtual machine may reclaim memory that a previous run freed, and getting the memory back takes
# longer than the work. Therefore the fastest of several consecutive passes counts, for Heft and
# peers.


def opened(path, times=3):
    return program("open", "heft", path, times)


def parse_tree(fmt, path, times=1):
    return program(TREE_FORMATS[fmt][0], path, times)


def decoded(fmt, path):
    """Parse in separate processes, because a second pass would reuse the memory of the first."""
    return fastest([*parse_tree(fmt, path), *parse_tree(fmt, path)])


def bare_loop(path):
    return program("open", "floor", path, 3)


def fastest(lines):
    """Return the fastest time, with the memory of the first pass."""
    return [min(v[0] for v in lines), *lines[0][1:]]


def listed(path, out):
    return min(seconds(HEFT, "ls", path, out=out) for _ in range(3))


def opening(r, inputs, formats, quick):
    """heft_file_open of a million tensors, compared with a bare loop over the same index, jansson
    and libcbor."""
    count = {
        fmt: MILLION if fmt in BARE_FORMATS else tensor_count(quick)
        for fmt in selected_formats(formats, quick) if fmt not in SLOW_FORMATS
    }
    files = {fmt: inputs.index(fmt, n) for fmt, n in count.items()}
    runs = {}
    for fmt, path in files.items():
        runs[fmt] = lambda path=path: fastest(opened(path))
        if fmt in BARE_FORMATS:
            runs["bare " + fmt] = lambda path=path: fastest(bare_loop(path))
        if fmt in TREE_FORMATS and has_program(TREE_FORMATS[fmt][0]):
            runs["tree " + fmt] = lambda fmt=fmt, path=path: decoded(fmt, path)
    results = measure_in_turns(3, runs)
    for fmt, n in count.items():
        took, own = [v[0] for v in results[fmt]], ([v[0] * 1e3 for v in results[fmt]], "ms")
        if fmt in BARE_FORMATS:
            r.ratio(fmt, took, [v[0] for v in results["bare " + fmt]], "bare loop", 1.5, own=own)
        elif fmt not in TREE_FORMATS:
            r.add(f"{fmt}: time", own[0], "ms")
        elif "tree " + fmt in results:
            _, peer, limit = TREE_FORMATS[fmt]
            r.faster(fmt, took, [v[0] for v in results["tree " + fmt]], peer, limit, own=own)
        else:
            r.missing(fmt, TREE_FORMATS[fmt][1], TREE_FORMATS[fmt][2], own=own)
        r.add(f"{fmt}: memory of its own", [v[3] / n for v in results[fmt]], "B/tensor", MEMORY)
        r.add(f"{fmt}: with pages of the mapped file", [v[4] / n for v in results[fmt]], "B/tensor",
              MEMORY if n == MILLION else None)  # a few MiB, independent of the number of tensors
    if quick:
        inputs.drop(*(files[fmt] for fmt in BARE_FORMATS & set(files)))


def scaling(r, inputs, formats, quick):
    """Time per tensor, from a thousand to a million."""
    passes = {1000: 50, 10_000: 10, 100_000: 3} if quick else \
        {1000: 200, 10_000: 50, 100_000: 10, 1_000_000: 3}

    def per_tensor(fmt, n, lines):
        return min(v[0] for v in lines) / n * 1e9

    for fmt in selected_formats(formats, quick):
        most = [n for n in passes if fmt not in SLOW_FORMATS or n <= 100_000]
        files = {n: inputs.index(fmt, n) for n in most}
        runs = {n: lambda n=n: per_tensor(fmt, n, opened(files[n], passes[n])) for n in most}
        took = measure_in_turns(2 if quick else 4, runs)
        for n in most:
            r.add(f"{fmt}, {n} tensors", took[n], "ns/tensor")
        r.add(f"{fmt}: growth from {most[0]} to {most[-1]}",
              [b / a for a, b in zip(took[most[0]], took[most[-1]])], "x", 2)
        if fmt in TREE_FORMATS and has_program(TREE_FORMATS[fmt][0]):
            for n in most:
                few = max(1, passes[n] // 10)
                figure = [
                    per_tensor(fmt, n, parse_tree(fmt, files[n], few))
                    for _ in range(1 if quick else 2)
                ]
                r.add(f"{TREE_FORMATS[fmt][1]} on {fmt}, {n} tensors", figure, "ns/tensor",
                      peer=TREE_FORMATS[fmt][1])


def listing(r, inputs, formats, quick):
    """heft ls of a million rows: into a file; and into /dev/null, compared with decoding without
    output."""
    n, out = tensor_count(quick), inputs.path("listing")
    files = {fmt: inputs.index(fmt, n) for fmt in formats if fmt not in SLOW_FORMATS}
    runs = {fmt: lambda path=path: listed(path, out) for fmt, path in files.items()}
    for fmt in {"burnpack", "ztensor"} & set(files) if has_program("cbor") else []:
        runs["only " + fmt] = lambda fmt=fmt: listed(files[fmt], os.devnull)
        runs["tree " + fmt] = lambda fmt=fmt: decoded(fmt, files[fmt])[0]
    took = measure_in_turns(3, runs)
    for fmt in files:
        r.add(f"heft ls, {fmt}", [n / t / 1e6 for t in took[fmt]], "M rows/s", 1, at_least=True)
        if "tree " + fmt in took:
            r.faster(f"heft ls, {fmt}", took["only " + fmt], took["tree " + fmt], "libcbor", 10,
                     own=([t * 1e3 for t in took["only " + fmt]], "ms"))
    inputs.drop(out, *files.values())


def find_ggml():
    """Return the library to measure: from the environment, or from npm."""
    named = os.environ.get("HEFT_PEER_GGML")
    found = [named] if named else sorted(
        str(path) for path in (BUILD / "npm-bench" /
                               "node_modules").glob("@node-llama-cpp/*/bins/*/libggml-base.so"))
    return found[0] if found and has_program("ggml") else None


def ggml(r, inputs, formats, quick):
    """heft ls of a GGUF with 100,000 tensors and 500,000 texts, compared with ggml's own reader."""
    if "gguf" not in formats:
        return
    tensors, path, library = 20_000 if quick else 100_000, inputs.path("texts.gguf"), find_ggml()
    write_gguf(path, tensors, 500_000)
    rounds = 3 if quick else 7
    took = measure_in_turns(rounds, {c: lambda c=c: seconds(HEFT, c, path) for c in ("ls", "info")})
    what, own = f"heft ls, {tensors} tensors", ([t * 1e3 for t in took["ls"]], "ms")
    theirs = program("ggml", library, "open", path, 1) if library else None
    if theirs:  # one run: ggml compares each name with every other name
        r.faster(what, took["ls"], [theirs[0][0]] * rounds, "ggml", 5, own=own)
    else:
        r.missing(what, "ggml", 5, own=own)
    r.add("heft info, vocabulary and all", [t * 1e3 for t in took["info"]], "ms")
    inputs.drop(path)


def sparse_ratio(r, what, limit, files, rounds, *command):
    """Add the ratio of a program's times for both files."""
    took = measure_in_turns(rounds, {
        label: lambda path=path: statistics.median(v[0] for v in program(*command, path, 100))
        for label, path in files.items()})
    large, small = took["8 GiB"], took["64 MiB"]
    r.ratio(f"{what}, 8 GiB", large, small, "64 MiB", limit, own=([t * 1e6 for t in large], "us"))


def finding(r, inputs, formats, quick):
    """Opening a file, finding one of 800 tensors and reading the tensor's first bytes: 64 MiB and 8
    GiB of payload. A bare mapping, of which one byte at the beginning and one in the middle are
    read, takes longer for the larger file, too, since the pages need more page tables. In npz a
    header precedes each tensor: in the larger file every header needs a page and a page table."""
    sizes = {"64 MiB": 64 * MIB, "8 GiB": 8 * GIB}
    rounds = 3 if quick else 7
    for fmt in formats[:2] if quick else formats:
        files = {label: inputs.sparse(fmt, size) for label, size in sizes.items()}
        if fmt == formats[0]:
            sparse_ratio(r, "a bare mapping", None, files, rounds, "limit", "pages")
        sparse_ratio(r, fmt, None if fmt == "npz" else 1.25, files, rounds, "open", "find")
        inputs.drop(*files.values())
