#!/usr/bin/env python3
"""check_changing.py COMMANDS [--full | --seconds N] [--seed N]: run commands on a file while it is
truncated, replaced, rewritten in place or extended.

A round starts a command and changes the input after a random time. A command that succeeds must
give the result of a state of the file: the old bytes, the new bytes, or a file that was written
halfway before the command began. Undisturbed runs give the expected results, and an independent
reader reads converted files. A command that fails must have an error status and leave no output.

There are 30 rounds for each command, or 10000 with --full, or as many as fit in --seconds; the
commands take turns. Commands with --threads run with 1 and 4 threads. TAP on stdout, and a comment
with figures."""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import commands
import gen_shards as gen
import read_safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

SHAPE, TENSORS = [512, 256], 6  # 3 MiB: a command takes milliseconds
ERRORS, FAULT, MAX_COMPLAINTS = (3, 4), 1, 10
PIECE = 64 << 10
PAGE = 4 << 10  # a write may stop between two pages while the command reads
HEADER = 1 << 10  # bytes; the headers and indexes of the models have 500 to 2000


def model(letter):
    """A model whose names and sizes do not depend on the letter: a mixture would open."""
    count = SHAPE[0] * SHAPE[1]
    return {f"t{i}": ("F32", SHAPE, letter.encode() * 4 * count) for i in range(TENSORS)}


# ---- changes: each returns the later states of the file --------------------


def truncate(path, old, new, rng):
    """Cut the file anywhere, or inside the header or the index at its end."""
    size = rng.choice([rng.randrange(len(old)), rng.randrange(HEADER),
                       len(old) - 1 - rng.randrange(HEADER)])
    os.truncate(path, size)
    return [old[:size]]


def replace(path, old, new, rng):
    path.with_suffix(".new").write_bytes(new)
    os.replace(path.with_suffix(".new"), path)
    return [new]


def rewrite(path, old, new, rng):
    """Write the new bytes over the old bytes, in pieces and in either direction."""
    starts = list(range(0, len(new), PIECE))
    if rng.randrange(2):
        starts.reverse()
    with open(path, "r+b", buffering=0) as f:
        for at in starts:
            os.pwrite(f.fileno(), new[at:at + PIECE], at)
    return states(old, new, starts)


def states(old, new, starts):
    """Yield the states of a file whose pieces are written from these places, page by page."""
    now = bytearray(old)
    for start in starts:
        end = min(start + PIECE, len(new))
        while start < end:
            stop = min(start - start % PAGE + PAGE, end)
            now[start:stop] = new[start:stop]
            start = stop
            yield bytes(now)


def rewrite_range(path, old, new, rng):
    """Write new bytes over a range of the data; the file is then a mixture."""
    begin = rng.randrange(len(old) // 2, len(old) - PIECE)
    with open(path, "r+b", buffering=0) as f:
        os.pwrite(f.fileno(), new[begin:begin + PIECE], begin)
    return states(old, new, [begin])


def extend(path, old, new, rng):
    with open(path, "ab") as f:
        f.write(new[:PIECE])
    return [old + new[:PIECE]]


CHANGES = (truncate, replace, rewrite, rewrite_range, extend)


# ---- commands -----------------------------------------------------------------------------------


class Case:
    """A command line with IN and OUT; `source` is the suffix of the input."""

    def __init__(self, line, source=".safetensors", changes=CHANGES, target=None):
        self.words, self.source, self.changes = line.split(), source, changes
        self.target = target  # name of the model that OUT holds before the command
        self.title = f"{line}, {source[1:]}"
        self.has_threads = self.words[0] in ("convert", "split", "merge", "append")


CASES = [
    Case("ls --json IN"), Case("ls --tree IN", ".zt"), Case("info --json IN"), Case("ids IN"),
    Case("verify --json IN"), Case("verify --json IN", ".zt"), Case("hash --json IN"),
    Case("hash --json IN", ".zt"), Case("stats --json IN"), Case("cat IN t3"),
    Case("cat IN t3", ".npz"), Case("show IN t5"), Case("scan --json IN"), Case("doctor --json IN"),
    Case("sbom IN"), Case("report --no-sync --quick -o OUT.html IN"),
    Case("sign --no-sync -k KEY -o OUT.sig IN"),
    Case("diff --json IN OUT", target="a"), Case("convert --no-sync IN OUT.safetensors"),
    Case("convert --no-sync IN OUT.zt"), Case("convert --no-sync IN OUT.mag", ".zt"),
    Case("convert --no-sync IN OUT.npz", ".npz"),
    Case("convert --no-sync --cast f16 IN OUT.gten"),
    Case("convert --no-sync --to gguf IN -"),
    Case("split --no-sync --count 3 IN OUT"), Case("merge --no-sync IN OUT.safetensors"),
    Case("append --no-sync OUT IN", target="c"),
    # The input is only replaced, because two writers of the same bytes have no order.
    Case("edit --set k=v IN", changes=(replace,)),
]


def contents(path):
    """Return the bytes of an output; of a signature, which is random, the signed statement."""
    if path.is_dir():
        return {p.name: p.read_bytes() for p in path.iterdir()}
    if path.suffix == ".sig" and path.exists():
        return json.loads(path.read_bytes())["dsseEnvelope"]["payload"]
    return path.read_bytes() if path.exists() else None


class Round:
    """A folder, and a server that runs the command."""

    def __init__(self, heft, pool, folder, models, case, seed):
        self.heft, self.pool, self.case = heft, pool, case
        self.folder, self.models = folder, models
        self.old, self.new = (models[letter, case.source] for letter in "ab")
        self.rng = random.Random(f"{seed} {case.title}")
        folder.mkdir()
        self.input = folder / f"in{case.source}"
        word = next((w for w in case.words if w.startswith("OUT")), None)
        self.out = folder / word.replace("OUT", "out") if word else None
        if case.target:
            self.out = folder / "out.safetensors"
        if case.words[0] == "edit":
            self.out = self.input
        self.expected, self.took, self.count = {}, 0, 0
        self.complaints = self.rehearse()

    def reset(self, data):
        for p in self.folder.iterdir():
            shutil.rmtree(p) if p.is_dir() else p.unlink()
        self.input.write_bytes(data)
        if self.case.target:
            self.out.write_bytes(self.models[self.case.target, ".safetensors"])
        os.utime(self.input, (1e9, 1e9))  # outside of the current tick of the clock

    def arguments(self, more=()):
        names = {"IN": str(self.input), "KEY": str(self.folder.parent / "key.pem")}
        args = [str(self.out) if w.startswith("OUT") else names.get(w, w) for w in self.case.words]
        return [args[0], *more, *args[1:]]

    def without_folder(self, text):
        return text.replace(str(self.folder).encode(), b"")

    def run(self, more=()):
        p = self.heft.run(*self.arguments(more), text=False)
        return p.returncode, self.without_folder(p.stdout), self.without_folder(p.stderr)

    def rehearse(self):
        """Return complaints if the command fails although nobody changes the input."""
        runs = [self.undisturbed(data) for data in (self.old, self.new)]
        other = FAULT if self.case.words[0] == "diff" else 0
        return [] if [status for status, _, _ in runs] == [0, other] else [str(runs)[:300]]

    def undisturbed(self, data):
        """Return status, stdout and output of a run on a file with the bytes."""
        key = hash(data)
        if key not in self.expected:
            self.reset(data)
            began = time.monotonic()
            status, out, _ = self.run()
            self.took = max(self.took, time.monotonic() - began)
            kept = contents(self.out) if self.out else None
            if len(self.expected) > 2:  # states of a rewritten file hardly recur
                return status, out, kept
            self.expected[key] = status, out, kept
        return self.expected[key]

    def take_turn(self):
        if len(self.complaints) < MAX_COMPLAINTS:
            self.complaints += self.disturbed()
            self.count += 1

    def disturbed(self):
        """Run a round; return complaints."""
        rng, change = self.rng, self.rng.choice(self.case.changes)
        self.reset(self.old)
        more = ["--threads", rng.choice("14")] if self.case.has_threads else []
        job = self.pool.submit(self.run, more)
        time.sleep(rng.random() * self.took * 1.2)
        after = change(self.input, self.old, self.new, rng)
        return self.judge(f"{change.__name__} {' '.join(more)}", job.result(), after)

    def judge(self, title, result, after):
        """Return complaints about a result; the input had the states `after` meanwhile."""
        status, out, err = result
        kept = contents(self.out) if self.out else None
        if self.case.words[0] == "verify" and status == FAULT and out:
            return []
        if status not in (0, FAULT, *ERRORS):
            return [f"{title}: exit {status}: {err[:300]}"]
        if self.case.words[0] == "edit":
            allowed = (self.new, self.undisturbed(self.old)[2], self.undisturbed(self.new)[2])
            return [] if kept in allowed else [f"{title}: exit {status}: a mixture"]
        got = status, out, kept
        if status in ERRORS and err and not self.is_left(kept):
            return []
        states = itertools.chain([self.old, self.new], after)
        if any(got == self.undisturbed(data) for data in states):
            return []
        return [f"{title}: exit {status}: {err[:200]}"]

    def is_left(self, kept):
        """True if a failed command has left an output."""
        if self.case.target:
            return kept != self.models[self.case.target, ".safetensors"]
        return bool(kept)


def make_models(heft, folder):
    """Return the bytes of each model in each source format, converted and compared."""
    models = {}
    for letter in "abc":
        tensors = model(letter)
        if letter == "c":
            tensors = {f"own {name}": t for name, t in tensors.items()}
        path = folder / f"{letter}.safetensors"
        path.write_bytes(gen.pack(tensors, {"which": letter}))
        models[letter, ".safetensors"] = path.read_bytes()
        for suffix, *options in ((".zt", "--digest", "crc32c"), (".npz", )):
            out = folder / f"{letter}{suffix}"
            back = folder / f"{letter}{suffix}.safetensors"
            for p in (heft.run("convert", *options, str(path), str(out)),
                      heft.run("convert", str(out), str(back))):
                if p.returncode:
                    raise RuntimeError(p.stderr)
            want = {t["name"]: t["sha256"] for t in read_safetensors.read(path)["tensors"]}
            got = {t["name"]: t["sha256"] for t in read_safetensors.read(back)["tensors"]}
            if got != want:
                raise RuntimeError(f"{out} has other tensors")
            models[letter, suffix] = out.read_bytes()
    return models


def make_key(folder):
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-out", pathlib.Path(folder, "key.pem")], check=True, capture_output=True)


def take_turns(rounds, most, end):
    """Run a round of each command in turn, until each has `most`, or until the time `end`."""
    while most and time.monotonic() < end:
        for r in rounds:
            if time.monotonic() < end:
                r.take_turn()
        most -= 1


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the title of a case")
    return parser.parse_args()


def main():
    o = parse_options()
    heft, began = commands.Commands(o.program), time.monotonic()
    most = 10000 if o.full else 10**9 if o.seconds else 30
    with tempfile.TemporaryDirectory(prefix="heft-changing-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(1) as pool:
        made = pathlib.Path(scratch, "models")
        made.mkdir()
        models = pool.submit(make_models, heft, made).result()
        make_key(scratch)
        rounds = [Round(heft, pool, pathlib.Path(scratch, f"round{i}"), models, case, o.seed)
                  for i, case in enumerate(CASES) if o.only in case.title]
        take_turns(rounds, most, began + o.seconds if o.seconds else float("inf"))
    failed = tap.report((f"{r.case.title}: {r.count} rounds", r.complaints) for r in rounds)
    failed |= heft.end()
    figures = {"campaign": "changing", "cases": sum(r.count for r in rounds),
               "seconds": round(time.monotonic() - began, 1), "commands": len(rounds),
               "failures": sum(bool(r.complaints) for r in rounds) + bool(failed)}
    print("#", json.dumps(figures))
    return failed


if __name__ == "__main__":
    sys.exit(main())
