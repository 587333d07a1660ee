#!/usr/bin/env python3
"""check_changing_calls.py COMMANDS HEFT SHIM [--full] [--only TEXT]: change the input of commands
before each of the system calls of the commands.

fail_calls.c stops the command before a call; the input is truncated, replaced, rewritten or
extended, and the command goes on. check_changing.py judges the result. The short form takes every
fifth call, with one change after the other; --full takes every call with every change. TAP and
figures on stdout."""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import commands
from check_changing import CASES, FAULT, Round, make_key, make_models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

STEP = 5
MAX_CALLS = 3000  # a command with more calls would take too long


class Stopped:
    """Runs of a command that stop before a call."""

    def __init__(self, heft, shim, at_round):
        self.heft, self.shim, self.round = heft, shim, at_round
        self.out, self.err, self.told = (tempfile.TemporaryFile() for _ in range(3))

    def start(self, n, more):
        for file in self.out, self.err, self.told:
            os.ftruncate(file.fileno(), 0)
            os.lseek(file.fileno(), 0, os.SEEK_SET)
        env = os.environ | {"LD_PRELOAD": self.shim, "HEFT_FAIL_AT": str(n), "HEFT_FAIL_STOP": "1",
                            "HEFT_FAIL_TELL": str(self.told.fileno())}
        return subprocess.Popen([self.heft, *self.round.arguments(more)], env=env, stdout=self.out,
                                stderr=self.err, pass_fds=[self.told.fileno()])

    def run(self, n, change, more):
        """Return complaints, or None if the command has fewer calls."""
        r = self.round
        r.reset(r.old)
        p = self.start(n, more)
        _, status = os.waitpid(p.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            p.returncode = os.waitstatus_to_exitcode(status)
            has_met = os.fstat(self.told.fileno()).st_size
            fine = p.returncode in (0, FAULT) and not has_met
            return None if fine else [f"did not stop before call {n}: status {p.returncode}"]
        try:
            after = change(r.input, r.old, r.new, r.rng)
        finally:
            os.kill(p.pid, signal.SIGCONT)
            p.wait()
        out, err, told = (os.pread(f.fileno(), os.fstat(f.fileno()).st_size, 0)
                          for f in (self.out, self.err, self.told))
        title = f"{change.__name__} before call {n}, {told.decode()} {' '.join(more)}"
        return r.judge(title, (p.returncode, r.without_folder(out), r.without_folder(err)), after)


def check(heft, shim, r, is_full):
    """Return (complaints, number of runs)."""
    s, complaints, count = Stopped(heft, shim, r), list(r.complaints), 0
    turns = itertools.cycle(r.case.changes)
    for n in range(1, MAX_CALLS, 1 if is_full else STEP):
        for change in r.case.changes if is_full else [next(turns)]:
            more = ["--threads", "14"[n % 2]] if r.case.has_threads else []
            found = s.run(n, change, more)
            if found is None or len(complaints) > 10:
                return complaints + ["no call was reached"] * (not count), count
            complaints, count = complaints + found, count + 1
    return [*complaints, f"more than {MAX_CALLS} calls"], count


def main():
    parser = argparse.ArgumentParser()
    for name in ("commands", "heft", "shim"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="", help="part of the title of a case")
    o = parser.parse_args()
    server, began = commands.Commands(o.commands), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="heft-changing-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = pathlib.Path(scratch, "models")
        made.mkdir()
        make_key(scratch)
        models = make_models(server, made)
        rounds = [Round(server, pool, pathlib.Path(scratch, f"round{i}"), models, case, 1)
                  for i, case in enumerate(CASES) if o.only in case.title]
        found = list(pool.map(lambda r: check(o.heft, o.shim, r, o.full), rounds))
    failed = tap.report((f"{r.case.title}: {n} calls", bad)
                        for r, (bad, n) in zip(rounds, found))
    failed |= server.end()
    figures = {"campaign": "changing calls", "cases": sum(n for _, n in found),
               "seconds": round(time.monotonic() - began, 1), "commands": len(rounds),
               "failures": sum(bool(bad) for bad, _ in found) + bool(failed)}
    print("#", json.dumps(figures))
    return failed


sys.exit(main())
