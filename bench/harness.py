"""harness.py - what the sections of run.py share: running in turns, figures, inputs."""
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


def warm_memory(quick):
    """The same for most of the machine's memory, once: the page cache takes what it finds."""
    with open("/proc/meminfo", encoding="utf-8") as f:
        free = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}["MemFree"]
    touch(min(free * 3 // 4, (4 if quick else 16) * GIB) // PAGE * PAGE + PAGE)


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
    names = [f["name"] for f in json.loads(out)["formats"] if f["read"] and f["write"] and f["name"] != "npy"]
    trial = inputs.path("trial")
    names = [name for name in names if program("make", trial, name, 1, 1, 2) is not None]
    inputs.drop(trial)
    return sorted(names, key=lambda name: (name != "safetensors", name))
