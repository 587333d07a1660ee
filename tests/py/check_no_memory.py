#!/usr/bin/env python3
"""check_no_memory.py HEFT SHIM [--full | --seconds N] [--seed N]: make allocations of each command
fail, for each format.

An allocation fails once, or all later allocations fail, too. The command must end with status 4,
its own message and an unchanged folder, or succeed with the usual result if it can do without the
memory. --full fails each allocation in both ways; the short form fails every sixth allocation;
--seconds chooses allocations at random until the time is over. TAP and figures on stdout."""
import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import zipfile

import gen_burnrecord
from boxes import CACHE, Box, make_folders, safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

FOUND, SYSTEM = 1, 4
MAX_CALLS = 2000  # allocations of a command; more would take too long
MAX_COMPLAINTS = 5
STEP = 6
PROCESSES = 2
TARGETS = ["bpk", "gptrs", "gten", "zt", "weights", "mag", "safetensors", "gguf", "npz"]
ALL_RULES = [
    "--rename", "s/layer/l/g", "--cast", "*=f16", "--keep", "layer.*", "--drop", "*.2.*",
    "--sparsify", "*.0.*=csr", "--set", "a=1", "--transpose", "*.1.*"
]


SHARES = "o.zt.shares/"  # stays for the next attempt


def commands():
    """Yield (name, arguments). See make_models() for the files."""
    yield from ((f"convert to {t}", ["convert", "-j1", "--allow-loss", "m.safetensors", f"o.{t}"])
                for t in TARGETS)
    yield "convert to npy", [
        "convert", "-j1", "--allow-loss", "--keep", "layer.0.*", "m.safetensors", "o.npy"
    ]
    yield "convert by rules", [
        "convert", "-j1", "--allow-loss", *ALL_RULES, "m.safetensors", "o.zt"
    ]
    yield "compress", [
        "convert", "-j1", "--compress", "zstd", "--digest", "sha256", "m.safetensors", "o.zt"
    ]
    yield "compress, version 2", [
        "convert", "-j1", "--compress", "zstd", "--format-version", "2", "m.safetensors", "o.zt"
    ]
    yield "decompress", ["convert", "-j1", "c.zt", "o.gguf"]
    yield "convert to a pipe", ["convert", "-j1", "--to", "mag", "--allow-loss", "c.zt", "-"]
    yield "split", ["split", "-j1", "--count", "2", "m.safetensors", "o"]
    yield "split, linked", ["split", "-j1", "--count", "2", "--to", "ztensor", "m.safetensors", "o"]
    yield "merge a set", ["merge", "-j1", "set", "o.gguf"]
    yield "merge files", [
        "merge", "-j1", "--allow-loss", "m.safetensors", "other.safetensors", "o.zt"
    ]
    yield from ((f"edit {f}", ["edit", "--set", "zz=1", "--rename", "layer.0.weight=w", f])
                for f in ("m.safetensors", "c.zt"))
    yield from ((f"append to {f}", [
        "append", "-j1", "--duplicates", "first", *more, f, "other.safetensors", "m.safetensors"
    ]) for f, *more in (["m.safetensors"], ["c.zt", "--rename", "s/layer/x/", "--keep", "layer.*"]))
    yield from ((f"{c} {f}", [c, *more, f])
                for c, *more in (["ls", "-l"], ["ls", "--json"], ["info"], ["verify"], ["hash"],
                                 ["stats"], ["stats", "--json"], ["ids"])
                for f in ("m.safetensors", "c.zt"))
    for t in TARGETS:
        f = f"f.{t}"
        yield f"convert {t}", ["convert", "-j1", "--allow-loss", f, "o.safetensors"]
        yield f"convert {t} within the format", ["convert", "-j1", "--allow-loss", f, f"o.{t}"]
        yield f"edit {t}", ["edit", "--rename", "layer.0.weight=w", f]
        yield f"append to {t}", ["append", "-j1", "--allow-loss", f, "other.safetensors"]
        yield f"verify {t}", ["verify", f]
        yield f"cat {t}", ["cat", f, "layer.0.weight"]
        yield f"diff {t}", ["diff", "m.safetensors", f]
    yield "verify a set", ["verify", "--json", "set"]
    yield "verify a record in gzip", ["verify", "r.mpk.gz"]
    yield "verify a deflated array", ["verify", "--json", "z.npz"]
    yield "convert a record in gzip", ["convert", "-j1", "--allow-loss", "r.mpk.gz", "o.mag"]
    yield "ls of a folder", ["ls", "folder"]
    yield "ls of a folder with a slash", ["ls", "folder/"]
    yield "ls of a folder with other weights", ["ls", "both"]
    yield "info of a pipeline", ["info", "pipeline"]
    yield "verify a pipeline", ["verify", "pipeline"]
    yield "bill of materials", ["sbom", "pipeline", "-o", "o.json"]
    yield "split by rules", [
        "split", "-j1", "--count", "2", "--to", "ztensor", "--digest", "layer.*=sha256",
        "m.safetensors", "o"
    ]
    yield "convert a share by rules", [
        "convert", "-j1", "--share", "1/1", "--keep", "layer.*", "--rename", "s/layer/l/",
        "m.safetensors", "o.zt"
    ]
    yield "convert with a vocabulary", [
        "convert", "-j1", "--allow-loss", "--vocab", "vocab.txt", "m.safetensors", "o.weights"
    ]
    yield "diff by rules", ["diff", "--rename", "s/layer/l/", "m.safetensors", "l.zt"]
    yield "verify a share", ["verify", "--share", "1/1", "c.zt"]
    yield "records of verify", ["verify", "--join", "verify", "c.zt"]
    for f in ("m.safetensors", "bytes.safetensors"):
        yield f"quantiles of {f}", ["stats", "--quantiles", "--json", f]
    yield "names of the cache", ["ls", "hub:"]
    yield "a model of the cache", ["ls", "hub:o/n"]
    yield "a download", ["verify", "--hub", CACHE + "/models--o--n"]
    yield "split again", ["split", "-j1", "--force", "--count", "3", "m.safetensors", "set"]
    yield "ls as a tree", ["ls", "--tree", "m.safetensors"]
    yield "ls of some", ["ls", "--raw", "c.zt", "layer.?.*"]
    yield "diff", ["diff", "m.safetensors", "c.zt"]
    yield "show", ["show", "c.zt", "layer.0.weight"]
    yield "cat", ["cat", "--npy", "c.zt", "layer.0.weight"]
    json_messages = "--messages=json"
    yield "messages of convert", [
        "convert", json_messages, "-j1", "-v", "--allow-loss", "m.safetensors", "o.npz"
    ]
    yield "messages of split", ["split", json_messages, "-j1", "--count", "2", "m.safetensors", "o"]
    yield "messages of edit", ["edit", json_messages, "--set", "zz=1", "m.safetensors"]
    yield "messages of append", ["append", json_messages, "-j1", "c.zt", "other.safetensors"]
    yield "doctor", ["doctor", "--json", "cut.safetensors"]
    yield "doctor, salvaging", ["doctor", "cut.safetensors", "-o", "o.safetensors"]
    yield "scan", ["scan", "p.pkl", "p.zip"]
    yield "scan of a folder", ["scan", "--json", "folder"]
    yield "report", ["report", "-o", "o.html", "c.zt"]
    yield "report of a difference", ["report", "-o", "o.html", "m.safetensors", "l.zt"]
    yield "bill of materials of a file", ["sbom", "m.safetensors"]
    yield "ids of an archive", ["ids", "--json", "f.gten"]
    yield "formats", ["formats"]
    yield "help", ["convert", "--help"]
    for command in ("show", "show --json", "cat"):
        yield f"a slice by {command}", [*command.split(), "c.zt", "layer.0.weight[0]"]
    yield "different values", ["diff", "m.safetensors", "v.safetensors"]
    yield "different values in JSON", ["diff", "--json", "m.safetensors", "v.safetensors"]
    yield "statistics as a tree", ["stats", "--json", "--tree", "--quantiles", "c.zt"]
    yield "ids of a record and a model", ["ids", "--model", "f.bpk", "f.bpk"]
    yield "bill of materials in a file", ["sbom", "-o", "o.json", "c.zt"]
    yield "convert a folder", ["convert", "-j1", "--allow-loss", "folder", "o.weights"]
    yield "verify by a profile", ["verify", "--profile", "gpt2", "m.safetensors"]
    yield "ls in order", ["ls", "--sort", "name", "m.safetensors"]
    yield "ls by alternatives", ["ls", "m.safetensors", "layer.{0,2}.*"]
    yield "info of a folder", ["info", "configured"]
    yield "info of an adapter", ["info", "adapter/adapter_model.safetensors"]
    yield "ids that are set", ["edit", "--set-id", "layer.0.weight=7", "f.bpk"]
    yield "ids that are filled", [
        "convert", "-j1", "--fill-ids", "--id-seed", "1", "m.safetensors", "o.bpk"
    ]
    trains = ["--requires-grad", "{layer.0,layer.2}.*=true"]
    yield "trained tensors", ["convert", "-j1", *trains, "m.safetensors", "o.gptrs"]
    yield "trained tensors of a share", [
        "convert", "-j1", "--share", "1/1", *trains, "m.safetensors", "o.zt"
    ]
    yield "trained tensors, merged", [
        "merge", "-j1", "--allow-loss", *trains, "m.safetensors", "other.safetensors", "o.gptrs"
    ]
    yield "trained tensors, edited", ["edit", *trains, "f.gptrs"]
    yield "files of a download by name", ["verify", "--hub", "--json", CACHE + "/models--o--n"]


def text_of(messages):
    """Return the line for people that the last of the messages in JSON stands for."""
    last = [json.loads(line) for line in messages.splitlines()][-1]
    return f"heft: {last['file']}: {last['text']}" if last["kind"] == "error" else ""


def says_the_same(messages, usual):
    """Return true if all names of the usual messages are there: a message that cannot be kept to be
    grouped is printed by itself."""
    named = set(re.findall(rb"'[^']+'", usual))
    return named and named <= set(re.findall(rb"'[^']+'", messages))


def unexpected_result(box, got, good):
    _, code, out, messages, after = got
    if got[1:] == good[1:]:
        return None
    _, *usual = good
    if [code, out, after] == [usual[0], usual[1], usual[3]] and says_the_same(messages, usual[2]):
        return None
    text = messages.decode(errors="replace")
    if text.startswith("{"):
        text = text_of(text)
    if code != SYSTEM:
        return f"ended with {code}: {text[:200]}"
    if not text.startswith("heft: ") or text.rstrip("\n").endswith(
            ": ") or "no details are available" in text:
        return f"says {text[:200]!r}"
    rest = {name: data for name, data in after.items() if not name.startswith(SHARES)}
    if rest == box.start or ("standard output" in text and after == good[4]):
        return None  # The report on a written file has failed.
    return f"left {sorted(set(rest) ^ set(box.start)) or 'a changed file'}"


class Campaign:
    """Fail the allocations of a command."""

    def __init__(self, box, args):
        self.box, self.args = box, args
        self.good = box.run(args, 0)
        box.reset()
        self.calls, self.cases, self.bad = 0, 0, []
        if self.good[1] not in (0, FOUND):
            self.bad.append(f"ends with {self.good[1]}: {self.good[3].decode()}")

    def fail(self, n, fail_on):
        """Fail allocation n; return False if the command has fewer allocations."""
        got = self.box.run(self.args, n, fail_on)
        if got[4] != self.box.start:
            self.box.reset()
        if not got[0]:
            return False
        self.calls, self.cases = max(self.calls, n), self.cases + 1
        why = unexpected_result(self.box, got, self.good)
        if why:
            self.bad.append(f"call {n}{' and later' if fail_on else ''}: {why}")
        return len(self.bad) < MAX_COMPLAINTS

    def fail_each(self, first, step, ways):
        for n in range(first, MAX_CALLS, step):
            if not all(self.fail(n, fail_on) for fail_on in ways(n)):
                break
        if not self.calls or self.calls + step >= MAX_CALLS:
            self.bad.append(f"{self.calls} allocations were seen")

    def fail_at_random(self, rng, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.bad) < MAX_COMPLAINTS:
            self.fail(rng.randrange(self.calls) + 1, rng.random() < 0.5)


def check(number, box, args, options, seconds):
    campaign = Campaign(box, args)
    if options.full:
        campaign.fail_each(1, 1, lambda n: (False, True))
    else:
        campaign.fail_each(1 + number % STEP, STEP, lambda n: (n % 2 == 0,))
        campaign.fail_at_random(random.Random(f"{options.seed} {args}"), seconds)
    return campaign


def make_models(heft, model):
    model.mkdir()
    (model / "m.safetensors").write_bytes(
        safetensors([f"layer.{i}.weight" for i in range(3)], format="pt", license="MIT"))
    (model / "v.safetensors").write_bytes((model / "m.safetensors").read_bytes()[:-1] + b"?")
    (model / "cut.safetensors").write_bytes((model / "m.safetensors").read_bytes()[:-30])
    (model / "other.safetensors").write_bytes(safetensors(["more"], license="GPL"))
    item, _, _ = gen_burnrecord.model()
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (900,)}".ljust(117) + "\n"
    with zipfile.ZipFile(model / "z.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", b"\x93NUMPY\1\0\x76\0" + head.encode() + bytes(900))
    (model / "r.mpk.gz").write_bytes(gzip.compress(gen_burnrecord.record(item), mtime=0))
    (model / "folder").mkdir()
    (model / "folder" / "model.safetensors").write_bytes(safetensors(["w"]))
    (model / "adapter").mkdir()
    (model / "adapter" / "adapter_model.safetensors").write_bytes(safetensors(["w"]))
    (model / "adapter" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (model / "configured").mkdir()
    (model / "configured" / "model.safetensors").write_bytes(safetensors(["w"]))
    (model / "configured" / "config.json").write_text('{"model_type": "bert"}')
    (model / "both").mkdir()
    for name in ("model.safetensors", "pytorch_model.bin"):
        (model / "both" / name).write_bytes(safetensors(["w"]))
    header = json.dumps({"w": {"dtype": "U8", "shape": [1024], "data_offsets": [0, 1024]}}).encode()
    (model / "bytes.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + bytes(1024))
    (model / "vocab.txt").write_text("a\nb\n")
    make_folders(model)
    for made in (["convert", "--compress", "zstd", "m.safetensors", "c.zt"],
                 ["convert", "--rename", "s/layer/l/", "m.safetensors", "l.zt"],
                 ["verify", "--share", "1/1", "-o", "verify", "c.zt"],
                 ["split", "--count", "2", "m.safetensors", "set"],
                 *(["convert", "--allow-loss", "m.safetensors", f"f.{t}"] for t in TARGETS)):
        subprocess.run([heft, *made], cwd=model, check=True, capture_output=True)


def parse_options():
    parser = argparse.ArgumentParser()
    for name in ("heft", "shim"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    os.environ["HF_HUB_CACHE"] = CACHE
    options, cases, began = parse_options(), list(commands()), time.monotonic()
    seconds = PROCESSES * options.seconds / len(cases)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        make_models(options.heft, root / "model")

        def one(i):
            box = Box(options.heft, options.shim, root / "model", root / f"box{i}")
            return check(i, box, cases[i][1], options, seconds)

        with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
            found = list(pool.map(one, range(len(cases))))
    status = tap.report((title, c.bad) for (title, _), c in zip(cases, found))
    print("#", json.dumps({
        "campaign": "failing memory", "cases": sum(c.cases for c in found),
        "seconds": round(time.monotonic() - began, 1),
        "failures": sum(bool(c.bad) for c in found), "commands": len(cases)
    }))
    return status


sys.exit(main())
