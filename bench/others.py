"""others.py - figures of the parameter store, content ids, EMBD files and other readers."""
import json
import os
import shutil
import statistics
import subprocess
import sys

from harness import (BUILD, GIB, HEFT, MIB, ROOT, read_numbers, peak_memory, processors, program,
                     read_all, seconds, speed, measure_in_turns, prefault)
from inputs import write_sentence_model
from payloads import LIMIT, add_share, loading_speed

PACKAGE = str(BUILD.parent / "bench" / "package.py")
PYTHON_READER = str(BUILD.parent / "bench" / "reader.py")


def python(r, inputs, formats, quick):
    """heft_part_read_many on one thread, into fresh memory, compared with NumPy and PyTorch; 512
    MiB."""
    mib = 96 if quick else 512
    for peer, suffix, limit in (("numpy", "npy", None), ("numpy", "npz", None),
                                ("torch", "pt", 1), ("torch", "legacy.pt", 1)):
        path = inputs.path("made." + suffix)
        if read_numbers(sys.executable, PYTHON_READER, "make", path, mib) is None:
            r.missing(f"all of a .{suffix}", peer, limit)
            continue
        inputs.settle(path)

        def read():
            took, got = read_numbers(sys.executable, PYTHON_READER, "read", path)[0]
            return got / took / 1e9

        took = measure_in_turns(
            2 if quick else 5, {
                "heft": lambda: loading_speed(inputs, "heft:fresh", path, "one"),
                "peer": lambda: inputs.stable_memory.run(read)
            })
        add_share(r, f"all of a .{suffix}", took["heft"], took["peer"], peer, limit)
        peak = peak_memory(HEFT, "convert", "--allow-loss", path,
                           inputs.path("converted.safetensors"))
        if peak is not None:
            r.add(f"a .{suffix} to safetensors: memory beside the mapped file", peak / MIB, "MiB",
                  64)
        inputs.drop(path, inputs.path("converted.safetensors"))


def tensors_in_python(r, inputs, formats, quick):
    """The Python package on a safetensors file of 100,000 tensors: opening and reading one tensor,
    compared with heft_file_open; each tensor by name."""
    path = inputs.index("safetensors", 100_000)
    if read_numbers(sys.executable, PACKAGE, "open", path) is None:
        r.missing("heft.open", "heft_file_open")
        return
    took = measure_in_turns(3 if quick else 7, {
        "python": lambda: read_numbers(sys.executable, PACKAGE, "open", path)[0][0] / 1e3,
        "c": lambda: min(v[0] for v in program("open", "heft", path, 1))})
    r.ratio("heft.open and one tensor", took["python"], took["c"], "heft_file_open", 1.3)
    rows = [read_numbers(sys.executable, PACKAGE, "tensors", path)[0] for _ in range(3)]
    r.add("file[name].shape", [row[0] for row in rows], "ns", 1000)
    r.add("file[name].numpy()", [row[1] for row in rows], "ns", 3000)
    inputs.drop(path)


LOADED = [  # label, how, peer, name of the peer, suffix, limit
    ("heft.load, numpy, .safetensors", "load", "readinto", "readinto", "safetensors", 0.95),
    ("heft.load, torch, .safetensors", "load-torch", "readinto", "readinto", "safetensors", 0.95),
    ("heft.load, numpy, .npy", "load", "npload", "numpy.load", "npy", None),
    ("heft.load, numpy, .npy", "load", "fromfile", "numpy.fromfile", "npy", None),
    ("heft.load, torch, .pt", "load-torch", "torch", "torch.load", "pt", None),
]


def package(r, inputs, formats, quick):
    """The Python package: heft.load by all threads, compared with loading the same files of 1 GiB
    by readinto on all processors into huge pages, and by NumPy and PyTorch, which have a thread."""
    mib = 72 if quick else 1008
    paths = {"safetensors": inputs.model("safetensors", mib)}
    for suffix in ("npy", "pt"):
        paths[suffix] = inputs.path("made." + suffix)
        if read_numbers(sys.executable, PYTHON_READER, "make", paths[suffix], mib) is not None:
            inputs.settle(paths[suffix])
    if read_numbers(sys.executable, PACKAGE, "load", paths["safetensors"]) is None:
        r.missing("heft.load", "readinto")
        return

    def run(how, path):
        took, got = read_numbers(sys.executable, PACKAGE, how, path)[0]
        return got / took / 1e9

    for label, how, peer, name, suffix, limit in LOADED:
        path = paths[suffix]
        if not os.path.exists(path) or read_numbers(sys.executable, PACKAGE, peer, path) is None:
            r.missing(label, name)
            continue
        took = measure_in_turns(2 if quick else 5, {
            one: lambda one=one: inputs.stable_memory.run(lambda: run(one, path))
            for one in (how, peer)})
        add_share(r, label, took[how], took[peer], name, limit)
    inputs.drop(*paths.values())


def hashing(r, inputs, formats, quick):
    """heft hash, a content id by BLAKE3, compared with sha256sum and b3sum; on all processors
    and on a single processor; 512 MiB. hash() of the npm package in Node."""
    path = inputs.model(formats[0], 144 if quick else 504)
    one = ["taskset", "--cpu-list", "0"]
    runs = {"heft": [HEFT, "hash"], "sha256sum": ["sha256sum"], "b3sum": ["b3sum"],
            "heft, one": [*one, HEFT, "hash"], "b3sum, one": [*one, "b3sum", "--num-threads", "1"]}
    runs = {name: argv for name, argv in runs.items()
            if name.startswith("heft") or shutil.which(name.split(",")[0])}
    took = measure_in_turns(2 if quick else 4, {
        name: lambda argv=argv: seconds(*argv, path) for name, argv in runs.items()})
    for label, ours, peer in (("heft hash", "heft", "sha256sum"), ("heft hash", "heft", "b3sum"),
                              ("heft hash, one processor", "heft, one", "b3sum, one")):
        own = (speed(os.path.getsize(path), took[ours]), "GB/s")
        if peer in took:
            r.faster(label, took[ours], took[peer], peer, 1.0, own=own)
        else:
            r.missing(label, peer, 1.0, own=own)
    hashing_in_node(r, path, one, quick)
    inputs.drop(path)


def hashing_in_node(r, path, one, quick):
    """The npm package has 128-bit vectors and a worker for each processor."""
    what, peer = "npm package, a worker for each processor", "heft hash, one processor"
    script = ROOT / "web/bench/hash.mjs"
    if not shutil.which("node") or not (ROOT / "build-web/package").is_dir():
        r.missing(what, peer, 0.6)
        return
    took = measure_in_turns(2 if quick else 4, {
        "node": lambda: read_numbers("node", script, path)[0][0],
        "heft": lambda: seconds(*one, HEFT, "hash", path)})
    r.faster(what, took["node"], took["heft"], peer, 0.6,
             own=(speed(os.path.getsize(path), took["node"]), "GB/s"))


def summarising(r, inputs, formats, quick):
    """heft stats, histograms included, on all processors, compared with the sum of the mapped file;
    1 GiB."""
    model = inputs.model("safetensors", 144 if quick else 1008)
    for dtype in ("f32", "f16", "bf16"):
        path = inputs.path(f"{dtype}.safetensors")
        seconds(HEFT, "convert", "--no-sync", "--allow-loss", "--cast", dtype, model, path)
        inputs.settle(path)
        took = measure_in_turns(2 if quick else 5, {
            "heft": lambda path=path: seconds(HEFT, "stats", path),
            "sum": lambda path=path: seconds(LIMIT, "sum", path, str(processors()))})
        r.faster(f"heft stats, {dtype}", took["heft"], took["sum"], "sum", 0.6,
                 own=(speed(os.path.getsize(path), took["heft"]), "GB/s"))
        inputs.drop(path)
    inputs.drop(model)


def comparing(r, inputs, formats, quick):
    """heft diff of two equal files, on all processors, compared with cmp; 1 GiB each."""
    path, copy = inputs.model(formats[0], 144 if quick else 1008), inputs.path("copy")
    shutil.copyfile(path, copy)
    inputs.settle(copy)
    took = measure_in_turns(2 if quick else 5, {
        "heft": lambda: seconds(HEFT, "diff", path, copy),
        "cmp": lambda: seconds("cmp", path, copy)})
    r.faster("heft diff, equal files", took["heft"], took["cmp"], "cmp", 0.9,
             own=(speed(os.path.getsize(path), took["heft"]), "GB/s"))
    inputs.drop(path, copy)


def change_one_percent(path, copy):
    """Write a copy with another value in each hundredth element of two bytes."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    at = slice(1 << 20, None, 200)
    data[at] = data[at].translate(bytes(b ^ 1 for b in range(256)))
    with open(copy, "wb") as f:
        f.write(data)


def deltas(r, inputs, formats, quick):
    """heft delta and heft apply where 1 % of the elements change, compared with reading both
    models; 1 GiB each.  In place, the time is that of 8 GiB."""
    path, copy = inputs.model(formats[0], 144 if quick else 1008), inputs.path("changed")
    delta, out = inputs.path("delta.zt"), inputs.path("applied.safetensors")
    change_one_percent(path, copy)
    inputs.settle(copy)

    def in_place():
        shutil.copyfile(path, out)
        return seconds(HEFT, "apply", "--in-place", "--no-sync", out, delta)

    took = measure_in_turns(2 if quick else 5, {
        "delta": lambda: seconds(HEFT, "delta", "-f", "--no-sync", path, copy, "-o", delta),
        "cat": lambda: seconds("sh", "-c", 'cat "$0" "$1" > /dev/null', path, copy),
        "apply": lambda: seconds(HEFT, "apply", "-f", "--no-sync", path, delta, "-o", out),
        "cp": lambda: seconds("cp", path, out), "in place": in_place})
    size = os.path.getsize(path)
    r.faster("heft delta, 1 % changed", took["delta"], took["cat"], "cat of both", 0.7,
             own=(speed(2 * size, took["delta"]), "GB/s"))
    r.faster("heft apply, 1 % changed", took["apply"], took["cat"], "cat of both", None,
             own=(speed(size, took["apply"]), "GB/s"))
    r.faster("heft apply, 1 % changed", took["apply"], took["cp"], "cp", 0.7)
    r.add("heft apply --in-place, 1 % changed: for 8 GiB",
          [t * 8 * GIB / size for t in took["in place"]], "s", 1)
    r.add("a delta of 1 %: size / size of the model", os.path.getsize(delta) / size, "x", 0.03)
    inputs.drop(path, copy, delta, out)


def parameters(r, inputs, formats, quick):
    """The parameter store: acquiring resident parameters, each thread its own parameters where
    nothing else is said, and streaming a model larger than the budget compared with cat; 2 GiB.
    Atomic additions show what the machine can do."""
    mib = 144 if quick else 2016
    path, threads, rounds = inputs.model(formats[0], mib), processors(), 3 if quick else 5
    prefault(GIB if not quick else GIB // 4)
    kinds = {"resident": ("acquire and release", 0.8 * threads),
             "same": ("acquire and release of one parameter", 1.0),
             "mixed": ("acquire and release, any parameter in each thread", None),
             "atomics": ("two atomic additions, in memory of each thread's own", None)}
    runs = [(how, n) for how in kinds for n in sorted({1, threads, 8})]
    took = measure_in_turns(rounds, {
        (how, n): lambda how=how, n=n: n * program("params", how, path, n)[0][0]
        for how, n in runs})
    for how, n in runs:
        what, limit = kinds[how]
        ratios = [a / b for a, b in zip(took[how, n], took[how, 1])]
        own = ([v / 1e6 for v in took[how, n]], "M/s")
        if n == 1:
            r.add(f"{what}, 1 thread", own[0], "M/s", limit and 5, at_least=True)
        else:
            r.add(f"{what}, {n} threads together: speed / 1 thread", ratios, "x", limit,
                  at_least=True, own=own)
    budget = mib // 8
    took = measure_in_turns(rounds, {
        "cat": lambda: seconds("cat", path),
        "stream": lambda: program("params", "stream", path, budget)[0][0],
        "sum": lambda: program("params", "sum", path, budget)[0][0]})
    size = os.path.getsize(path)
    r.faster(f"streaming {mib} MiB through {budget} MiB", took["stream"], took["cat"], "cat", 0.9,
             own=(speed(size, took["stream"]), "GB/s"))
    r.faster("the same, every byte summed", took["sum"], took["cat"], "cat",
             own=(speed(size, took["sum"]), "GB/s"))
    inputs.drop(path)


def embedding(r, inputs, formats, quick):
    """An EMBD file with the shapes of all-MiniLM-L6-v2, 90 MB, compared with cp and cat."""
    if "embd" not in formats:
        return
    folder, path = inputs.path("MiniLM"), inputs.path("MiniLM.weights")
    copy, out = inputs.path("copy"), inputs.path("converted.weights")
    source = write_sentence_model(folder)
    seconds(HEFT, "convert", "--no-sync", folder, path)
    read_all(source)
    size = os.path.getsize(source)

    def fresh(*command):
        return inputs.timed(*command, targets=(copy, out))

    took = measure_in_turns(3 if quick else 9, {
        "find": lambda: statistics.median(v[0] for v in program("open", "find", path, 20)),
        "cat": lambda: seconds("cat", path),
        "verify": lambda: seconds(HEFT, "verify", path),
        "cp": lambda: fresh("cp", source, copy),
        "convert": lambda: fresh(HEFT, "convert", "--no-sync", source, out),
        "folder": lambda: fresh(HEFT, "convert", "--no-sync", folder, out),
    })
    r.add("opened, one tensor found, its first bytes read", [t * 1e6 for t in took["find"]], "us",
          1000)
    r.ratio("heft verify, three checksums", took["verify"], took["cat"], "cat", 1.3,
            own=(speed(size, took["verify"]), "GB/s"))
    for what, label in (("convert", "from safetensors"), ("folder",
                                                          "from the folder, vocabulary included")):
        r.ratio(label, took[what], took["cp"], "cp", 1.2, own=(speed(size, took[what]), "GB/s"))
    inputs.drop(path, copy, out)
    shutil.rmtree(folder)


def browser(r, inputs, formats, quick):
    """The page in Chromium, with a safetensors index of 100,000 tensors on a local server: opening
    compared with JSON.parse and a list of the same objects, and the time from the last byte of the
    index to the first row on the screen."""
    what = "open 100,000 tensors in Chromium"
    site, packages = ROOT / "build-web/page", BUILD / "npm-page"
    argv = ["node", ROOT / "tests/page/bench_page.mjs", site, "--json"]
    is_here = shutil.which("node") and site.is_dir() and packages.is_dir()
    done = is_here and subprocess.run(argv, cwd=packages, stdout=subprocess.PIPE, check=False)
    if not done or done.returncode:
        r.missing(what, "JSON.parse", 0.33)
        return
    took = json.loads(done.stdout)
    r.ratio(what, took["heft"], took["json"], "JSON.parse", 0.33, own=(took["heft"], "ms"))
    r.add("first row after the last byte", took["row"], "ms", 100)
    r.add("first row in a page that was loaded just now", took["rowAtOnce"], "ms")
