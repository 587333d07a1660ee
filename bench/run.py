#!/usr/bin/env python3
"""run.py [--quick] [--only SECTION,...] [--dir DIR]: what heft costs, beside its limits and peers.

Things that are compared run in turns, A B A B; the first turn is dropped.  A figure is the median of the
rest, with the lowest and the highest; a ratio is the median of the ratios of each turn, so that a machine
that drifts does not count.  Memory that a run will need is touched beforehand.  Inputs are made in DIR
(build/bench/tmp) and removed.  Results also go to build/bench/results.json."""
import argparse
import contextlib
import json
import mmap
import os
import pathlib
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = TOP / "build"
HEFT = str(BUILD / "heft")
MIB, GIB = 1 << 20, 1 << 30
LAYER = 8  # tensors that make.c writes per layer
PAGE = mmap.PAGESIZE


# ---- running ---------------------------------------------------------------------------------


def touch(size):
    """Makes the machine find so much memory now, not while the clock runs."""
    with contextlib.closing(mmap.mmap(-1, size)) as m:
        for at in range(0, size, PAGE):
            m[at] = 1


def read_all(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(4 * MIB):
            pass


def program(name, *args):
    """Lines that a program of this folder prints, as lists of numbers; None when it fails."""
    done = subprocess.run([str(BUILD / "bench" / name), *map(str, args)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"  {done.stderr.strip()}", file=sys.stderr)
        return None
    out = done.stdout
    return [[float(word) for word in line.split()] for line in out.splitlines()]


def seconds(*argv, out=os.devnull):
    """Wall time of a command that must succeed; what it says of losses is not wanted here."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    path = shutil.which(argv[0])
    begin = time.perf_counter()
    pid = os.posix_spawn(path, argv, os.environ, file_actions=actions)
    status = os.waitpid(pid, 0)[1]
    took = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(argv)}: ended with status {os.waitstatus_to_exitcode(status)}")
    return took


def peak_memory(*argv):
    """The most memory of its own, mapped files aside, that a command was seen with."""
    peak = 0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None:
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{p.pid}/status").read_text()
                own = [int(line.split()[1]) for line in text.splitlines()
                       if line.startswith(("RssAnon", "RssShmem"))]
                peak = max(peak, sum(own) * 1024)
            time.sleep(0.0005)
    return peak


def take_turns(rounds, runs):
    """{label: function} -> {label: what it returned in each turn but the first}."""
    results = {label: [] for label in runs}
    for i in range(rounds + 1):
        for label, run in runs.items():
            result = run()
            if i:
                results[label].append(result)
    return results


# ---- figures ---------------------------------------------------------------------------------


class Report:
    def __init__(self):
        self.rows = []
        self.section = ""

    def begin(self, section):
        self.section = section
        print(f"\n{section}", flush=True)

    def add(self, what, values, unit, limit=None, at_least=False, peer=None):
        """limit: the most that the median may be, or the least."""
        values = values if isinstance(values, list) else [values]
        median = statistics.median(values)
        holds = None if limit is None else median >= limit if at_least else median <= limit
        self.rows.append({"section": self.section, "what": what, "unit": unit, "median": median,
                          "min": min(values), "max": max(values), "runs": len(values),
                          "limit": limit, "at_least": at_least, "peer": peer, "holds": holds})
        spread = f"{min(values):.4g} - {max(values):.4g}" if len(values) > 1 else ""
        bound = "" if limit is None else f"{'>=' if at_least else '<='} {limit:g}"
        verdict = {None: "", True: "holds", False: "MISSED"}[holds]
        print(f"  {what:<58} {median:>10.4g} {unit:<10} {spread:>21}  {bound:<12} {verdict}",
              flush=True)

    def ratio(self, what, values, peers, peer, limit=None):
        self.add(f"{what} : {peer}", [a / b for a, b in zip(values, peers)], "x", limit, peer=peer)

    def write(self, path, about):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**about, "figures": self.rows}, indent=1) + "\n")


def machine():
    model = ""
    with contextlib.suppress(OSError):
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    version = subprocess.run([HEFT, "--version"], check=True, stdout=subprocess.PIPE, text=True)
    return {"date": time.strftime("%Y-%m-%d"), "heft": version.stdout.strip(), "cpu": model,
            "processors": len(os.sched_getaffinity(0)), "system": platform.system(),
            "release": platform.release().split("-")[0]}


# ---- inputs ----------------------------------------------------------------------------------


class Inputs:
    """Files of the temporary directory, made when they are first asked for."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)

    def path(self, name):
        return str(self.directory / name)

    def make(self, name, fmt, layers, rows, columns, *holes):
        path = self.path(name)
        if not os.path.exists(path):
            if program("make", path, fmt, layers, rows, columns, *holes) is None:
                sys.exit(f"{fmt}: no input could be made")
            if not holes:
                read_all(path)
        return path

    def index(self, fmt, tensors):
        """Many tensors of two elements, no payload written."""
        return self.make(f"{tensors}.{fmt}", fmt, tensors // LAYER, 1, 2, "holes")

    def model(self, fmt, size):
        """A few hundred tensors of f32 and f16: six matrices of 8 or 16 MiB a layer."""
        side = 2048
        return self.make(f"{size}.{fmt}", fmt, max(1, size // (72 * MIB)), side, side)

    def sparse(self, fmt, size):
        """800 tensors, whatever the size, and nothing but holes for their payload."""
        layers, rows = 100, 64
        return self.make(f"sparse-{size}.{fmt}", fmt, layers, rows, size // (18 * layers * rows),
                         "holes")

    def sentence_model(self):
        """A model folder of the shapes of all-MiniLM-L6-v2."""
        folder = self.directory / "MiniLM"
        folder.mkdir()
        header, at = {}, 0
        for name, shape in sentence_shapes():
            size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / "model.safetensors", "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            for left in range(at, 0, -MIB):
                out.write(os.urandom(min(left, MIB)))
        words = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        words += [f"word{i}" for i in range(VOCABULARY - len(words))]
        (folder / "vocab.txt").write_text("".join(w + "\n" for w in words))
        (folder / "config.json").write_text(json.dumps({
            "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 12,
            "max_position_embeddings": 512, "vocab_size": VOCABULARY}))
        return str(folder)

    def drop(self, *paths):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


VOCABULARY = 30522


def sentence_shapes():
    hidden, inner = 384, 1536
    yield "embeddings.word_embeddings.weight", [VOCABULARY, hidden]
    yield "embeddings.position_embeddings.weight", [512, hidden]
    yield "embeddings.token_type_embeddings.weight", [2, hidden]
    norms = ["embeddings.LayerNorm"]
    for i in range(6):
        at = f"encoder.layer.{i}."
        for name, out, into in [("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)]:
            yield f"{at}{name}.weight", [out, into]
            yield f"{at}{name}.bias", [out]
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
    for name in norms:
        yield f"{name}.weight", [hidden]
        yield f"{name}.bias", [hidden]


def written_formats(inputs):
    """Those that hold a model of many tensors, safetensors first."""
    out = subprocess.run([HEFT, "formats", "--json"], check=True, stdout=subprocess.PIPE).stdout
    names = [f["name"] for f in json.loads(out)["formats"] if f["read"] and f["write"]]
    trial = inputs.path("trial")
    names = [name for name in names if program("make", trial, name, 1, 1, 2) is not None]
    inputs.drop(trial)
    return sorted(names, key=lambda name: (name != "safetensors", name))


# ---- sections --------------------------------------------------------------------------------

MANY = 1_000_000


def opening(r, inputs, formats, quick):
    """heft_open of a million tensors, beside jansson, beside a bare loop, and each other."""
    files = {fmt: inputs.index(fmt, MANY) for fmt in formats}
    bare = [fmt for fmt, path in files.items() if program("open", "floor", path, 1)]
    touch(3 * GIB)
    rounds = 3 if quick else 11
    has_json = (BUILD / "bench" / "json").exists() and "safetensors" in files
    runs = {}
    if has_json:
        runs["json"] = lambda: program("json", files["safetensors"], 1)[0]
        runs["info"] = lambda: seconds(HEFT, "info", files["safetensors"])
    cbor = [fmt for fmt in files if fmt in ("burnpack", "ztensor") and (BUILD / "bench" / "cbor").exists()]
    for fmt in cbor:
        runs["cbor " + fmt] = lambda path=files[fmt]: program("cbor", path, 1)[0]
        runs["ls " + fmt] = lambda path=files[fmt]: seconds(HEFT, "ls", path)
    for fmt, path in files.items():
        runs[fmt] = lambda path=path: program("open", "heft", path, 1)[0]
        if fmt in bare:
            runs["floor " + fmt] = lambda path=path: program("open", "floor", path, 1)[0]
    results = take_turns(rounds, runs)
    took = {label: [v[0] if isinstance(v, list) else v for v in values]
            for label, values in results.items()}
    if has_json:
        r.add("jansson, the same header", took["json"], "s")
        r.add("heft info, the whole process", took["info"], "s")
        r.ratio("heft info", took["info"], took["json"], "jansson", 0.1)
        r.ratio("safetensors", took["safetensors"], took["json"], "jansson", 0.1)
    for fmt in files:
        r.add(f"{fmt}", took[fmt], "s")
        if fmt in cbor:
            r.add(f"libcbor, the same manifest of {fmt}", took["cbor " + fmt], "s")
            r.ratio(fmt, took[fmt], took["cbor " + fmt], "libcbor", 0.1)
            r.ratio(f"heft ls, {fmt}", took["ls " + fmt], took["cbor " + fmt], "libcbor", 0.1)
        elif fmt != "safetensors" and "safetensors" in files:
            r.ratio(fmt, took[fmt], took["safetensors"], "safetensors", 0.5)
        if fmt in bare:
            r.ratio(fmt, took[fmt], took["floor " + fmt], "bare loop")
        index, own, highest = ([v[i] / MANY for v in results[fmt]] for i in (2, 3, 4))
        r.add(f"{fmt}: the index says", index, "B/tensor", 160)
        r.add(f"{fmt}: growth of RssAnon", own, "B/tensor", 160)
        r.add(f"{fmt}: growth of VmHWM, mapped file included", highest, "B/tensor", 160)


def scaling(r, inputs, formats, quick):
    """Time per tensor, from a thousand to a million."""
    passes = {1000: 200, 10_000: 50, 100_000: 10, MANY: 1 if quick else 3}
    for fmt in formats:
        files = {n: inputs.index(fmt, n) for n in passes}
        runs = {n: lambda n=n: min(v[0] for v in program("open", "heft", files[n], passes[n]))
                for n in passes}
        for n, took in take_turns(2 if quick else 7, runs).items():
            r.add(f"{fmt}, {n} tensors", [t / n * 1e9 for t in took], "ns/tensor")


def listing(r, inputs, formats, quick):
    """heft ls of a million rows, into a file."""
    out = inputs.path("listing")
    files = {fmt: inputs.index(fmt, MANY) for fmt in formats}
    runs = {fmt: lambda path=path: seconds(HEFT, "ls", path, out=out) for fmt, path in files.items()}
    for fmt, took in take_turns(3 if quick else 7, runs).items():
        r.add(f"heft ls, {fmt}", [MANY / t for t in took], "rows/s", 1e6, at_least=True)
    inputs.drop(out, *files.values())


def finding(r, inputs, formats, quick):
    """Opening, finding one tensor and reading its first bytes: small and large payload."""
    sizes = {"64 MiB": 64 * MIB, "8 GiB": 8 * GIB}
    for fmt in formats:
        files = {label: inputs.sparse(fmt, size) for label, size in sizes.items()}
        runs = {label: lambda path=path: statistics.median(
                    v[0] for v in program("open", "find", path, 100))
                for label, path in files.items()}
        took = take_turns(5 if quick else 11, runs)
        for label in sizes:
            r.add(f"{fmt}, one of 800 tensors, {label}", [t * 1e6 for t in took[label]], "us")
        r.ratio(f"{fmt}, 8 GiB", took["8 GiB"], took["64 MiB"], "64 MiB", 1.25)
        inputs.drop(*files.values())


def pairs(formats, quick):
    """Every format as source and as target; unless quick, the first one with every other, too."""
    for i, source in enumerate(formats):
        behind = formats[(i + 1) % len(formats)]
        for target in formats:
            if target == behind or not quick and formats[0] in (source, target):
                yield source, target


def converting(r, inputs, formats, quick):
    """heft convert beside cp of the same file, page cache warm; memory beside the mapped file."""
    size = 512 * MIB if quick else 2 * GIB
    copy, out = inputs.path("copy"), inputs.path("converted")
    last = None
    for source, target in pairs(formats, quick):
        path = inputs.model(source, size)
        if source != last:
            if last:
                inputs.drop(inputs.model(last, size))
            last = source
        argv = [HEFT, "convert", "--allow-loss", "--to", target, path, out]

        def fresh(*command):
            inputs.drop(copy, out)
            touch(size + size // 8)
            return seconds(*command)

        took = take_turns(3 if quick else 5, {
            "cp": lambda: fresh("cp", path, copy),
            "one": lambda: fresh(*argv, "--threads", "1"),
            "two": lambda: fresh(*argv, "--threads", "2"),
        })
        inputs.drop(copy, out)
        what = f"{source} to {target}"
        r.ratio(f"{what}, 1 thread", took["one"], took["cp"], "cp", 1.1)
        r.ratio(f"{what}, 2 threads", took["two"], took["cp"], "cp", 0.85)
        r.add(f"{what}, 2 threads", [os.path.getsize(path) / 1e9 / t for t in took["two"]], "GB/s")
        for threads in ("1", "2"):
            peak = peak_memory(*argv, "--threads", threads) / MIB
            inputs.drop(out)
            r.add(f"{what}, {threads} thread{'s' * (threads > '1')}: own memory", peak, "MiB", 64)
    inputs.drop(inputs.model(last, size))


def hashing(r, inputs, formats, quick):
    """heft hash and heft verify beside the tools for it."""
    size = 512 * MIB if quick else 2 * GIB
    fmt = "mag" if "mag" in formats else formats[0]
    path = inputs.model(fmt, size)
    touch(GIB)
    runs = {"heft hash": lambda: seconds(HEFT, "hash", path),
            "heft verify": lambda: seconds(HEFT, "verify", path),
            "sha256sum": lambda: seconds("sha256sum", path)}
    if shutil.which("b3sum"):
        runs["b3sum"] = lambda: seconds("b3sum", path)
    total = os.path.getsize(path) / 1e9
    took = take_turns(3 if quick else 7, runs)
    for label, values in took.items():
        if label == "heft verify":
            r.add(f"{label}, {fmt} of {size // MIB} MiB (its checksum covers the index)", values, "s")
        else:
            r.add(f"{label}, {fmt} of {size // MIB} MiB", [total / t for t in values], "GB/s")
    r.ratio("heft hash", took["heft hash"], took["sha256sum"], "sha256sum")
    inputs.drop(path)


def verifying(r, inputs, formats, quick):
    """heft verify of a million tensors."""
    for fmt in formats:
        path = inputs.index(fmt, MANY)
        took = take_turns(3 if quick else 7, {"verify": lambda: seconds(HEFT, "verify", path)})
        r.add(f"heft verify, {fmt}, a million tensors", took["verify"], "s")
        inputs.drop(path)


def parameters(r, inputs, formats, quick):
    """The parameter store: acquiring what is there, streaming what does not fit, beside cat."""
    size = 512 * MIB if quick else 2 * GIB
    budget = size // 8 // MIB
    path = inputs.model(formats[0], size)
    touch(GIB)
    rounds = 3 if quick else 7
    threads = len(os.sched_getaffinity(0))
    took = take_turns(rounds, {
        "one": lambda: program("params", "resident", path, 1)[0][0],
        "all": lambda: program("params", "resident", path, threads)[0][0]})
    r.add("acquire and release, 1 thread", took["one"], "1/s", 5e6, at_least=True)
    r.add(f"acquire and release, {threads} threads, each", took["all"], "1/s", 5e6, at_least=True)
    took = take_turns(rounds, {
        "cat": lambda: seconds("cat", path),
        "stream": lambda: program("params", "stream", path, budget)[0][0],
        "sum": lambda: program("params", "sum", path, budget)[0][0]})
    r.add(f"streaming {size // MIB} MiB through {budget} MiB",
          [os.path.getsize(path) / 1e9 / t for t in took["stream"]], "GB/s")
    r.add("the same, every byte summed", [os.path.getsize(path) / 1e9 / t for t in took["sum"]],
          "GB/s")
    r.add("streaming, its speed : cat", [c / s for c, s in zip(took["cat"], took["stream"])], "x", 0.9,
          at_least=True, peer="cat")
    inputs.drop(path)


def casting(r, inputs, formats, quick):
    """heft_cast() on one thread, beside memcpy() of the same bytes."""
    size, rounds = (64, 7) if quick else (512, 15)
    touch(2 * size * MIB)
    limits = {("f32", "bf16"): 1.25}  # it reads as much as memcpy and writes half
    for pair in (("f32", "bf16"), ("f32", "f16"), ("bf16", "f32"), ("f16", "f32"), ("f64", "f32"),
                 ("f32", "f8_e4m3fn"), ("f8_e4m3fn", "f32"), ("f32", "i32")):
        lines = program("cast", *pair, size, rounds)[1:]
        casts, copies = zip(*lines)
        r.add(" to ".join(pair), [size * MIB / 1e9 / t for t in casts], "GB/s")
        r.ratio(" to ".join(pair), casts, copies, "memcpy", limits.get(pair))


def embedding(r, inputs, formats, quick):
    """An EMBD file of the shapes of all-MiniLM-L6-v2, 90 MB, beside cp and cat."""
    if "embd" not in formats:
        return
    folder = inputs.sentence_model()
    source, path = folder + "/model.safetensors", inputs.path("MiniLM.weights")
    copy, out = inputs.path("copy"), inputs.path("converted.weights")
    seconds(HEFT, "convert", folder, path)
    read_all(source)
    read_all(path)
    touch(GIB // 2)

    def fresh(*command):
        inputs.drop(copy, out)
        return seconds(*command)

    took = take_turns(7 if quick else 15, {
        "find": lambda: statistics.median(v[0] for v in program("open", "find", path, 20)),
        "cat": lambda: seconds("cat", path),
        "verify": lambda: seconds(HEFT, "verify", path),
        "cp": lambda: fresh("cp", source, copy),
        "convert": lambda: fresh(HEFT, "convert", source, out),
        "folder": lambda: fresh(HEFT, "convert", folder, out),
    })
    r.add("opened, one tensor found, its first bytes read", [t * 1e6 for t in took["find"]], "us", 1000)
    r.ratio("heft verify, three checksums", took["verify"], took["cat"], "cat", 1.3)
    r.ratio("from safetensors", took["convert"], took["cp"], "cp", 1.2)
    r.ratio("from the model folder, vocabulary included", took["folder"], took["cp"], "cp", 1.2)
    inputs.drop(path, copy, out)
    shutil.rmtree(folder)


SECTIONS = [opening, scaling, listing, verifying, finding, converting, hashing, parameters, casting, embedding]


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--quick", action="store_true", help="fewer turns, smaller models")
    args.add_argument("--only", default="", metavar="SECTION,...",
                      help=", ".join(section.__name__ for section in SECTIONS))
    args.add_argument("--dir", default=str(BUILD / "bench"), help="where inputs are made")
    a = args.parse_args()
    wanted = a.only.split(",") if a.only else [section.__name__ for section in SECTIONS]
    r, about = Report(), machine()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    with tempfile.TemporaryDirectory(prefix="tmp", dir=a.dir) as directory:
        inputs = Inputs(directory)
        formats = written_formats(inputs)
        for section in SECTIONS:
            if section.__name__ in wanted:
                r.begin(f"{section.__name__}: {section.__doc__}")
                section(r, inputs, formats, a.quick)
    r.write(BUILD / "bench" / "results.json", {**about, "quick": a.quick})
    missed = sum(row["holds"] is False for row in r.rows)
    print(f"\n{len(r.rows)} figures, {sum(row['holds'] is True for row in r.rows)} limits hold, "
          f"{missed} missed; written to build/bench/results.json")


main()
