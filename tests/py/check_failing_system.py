#!/usr/bin/env python3
"""check_failing_system.py HEFT COMMANDS SHIM RECORDER [--full | --seconds N] [--seed N]
[--only TEXT]: fail a system call of each command that writes files, in each format.

fail_calls.c (SHIM) fails one call with one of ERRORS, or lets the call transfer half of the bytes,
or fails all calls from a call on. The command must end with 4, a message with the cause, and the
old files, or say that the new files are saved, or succeed with the usual files, but not after a
failed sync. Half a transfer and a signal (EINTR) must change nothing. --full fails each call
in each way; the short form and --seconds choose calls at random. TAP and figures on stdout."""
import errno
import itertools
import os
import random
import shutil
import subprocess
import sys
import time

from campaign import parse_options, run_campaign
from commands import Commands
from crash_judge import NOTE, Judge, state_of
from crash_scenes import LEFT, contents, copy_folder, without_shares

SYSTEM = 4
ERRORS = [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, errno.EAGAIN, errno.EMFILE]
ONCE = [{"HEFT_FAIL_ERRNO": str(e)} for e in ERRORS]
HALF = {"HEFT_FAIL_HALF": "1"}
FROM_THEN_ON = [{"HEFT_FAIL_ERRNO": str(e), "HEFT_FAIL_ON": "1"}
                for e in (errno.EIO, errno.ENOSPC)]
WAYS = [*ONCE, HALF, *FROM_THEN_ON]
TRANSFERS = {"read", "pread", "preadv", "write", "pwrite", "copy_file_range"}
ALLOCATING = {"mmap", "mremap"}  # a large block of memory, whatever the system says of it
REPEATED = TRANSFERS | {"fallocate", "flock", "fsync", "ftruncate", "openat"}
# Files may be left where the search for files, or the removal, fails.
CLEANING = {"unlinkat", "readdir", "fdopendir", "openat", "flock", "fstat", "fstatat"}
SHORT = 8  # failures per scene
MAX_COMPLAINTS = 5


class Campaign:
    """Fail the calls of a scene."""

    def __init__(self, options, scene, work):
        self.heft, self.shim, self.scene = options.heft, options.shim, scene
        self.commands = Commands(options.commands)
        self.cases, self.bad = 0, []
        self.box = copy_folder(scene.start, work / "box")
        self.usual = self.run(0, {})
        self.good = contents(self.box)
        if self.usual[1]:
            raise RuntimeError(f"ends with {self.usual[1]}: {self.usual[3]}")
        self.judge = Judge(self.commands, scene, work / "judged", self.good)

    def run(self, n, way):
        """Return the name of the call that failed, exit status, stdout and stderr."""
        args = [self.heft, self.scene.args[0], "--no-sandbox", *self.scene.args[1:]]
        read, write = os.pipe()
        env = os.environ | way | {
            "LD_PRELOAD": self.shim, "HEFT_FAIL_AT": str(n), "HEFT_FAIL_TELL": str(write)
        }
        p = subprocess.run(args, cwd=self.box, env=env, pass_fds=[write], capture_output=True)
        os.close(write)
        name = os.read(read, 64).decode()
        os.close(read)
        return name, p.returncode, p.stdout, p.stderr.decode(errors="replace")

    def wrong(self, way, name, code, out, text):
        """Return a complaint about the result of a failed call, or None."""
        files = contents(self.box)
        error = int(way.get("HEFT_FAIL_ERRNO", 0))
        must_pass = way is HALF or (
            error == errno.EINTR and name in REPEATED)
        if code == 0 or must_pass:
            same = (code, out, files) == (0, self.usual[2], self.good)
            settles = name in CLEANING and not self.judge.verdict(state_of(self.box))[0]
            if not same and not (code == 0 and settles):
                return f"ends with {code} and other files: {sorted(files)}: {text}"
            return "ignores a failed sync" if name == "fsync" and not must_pass else None
        if code != SYSTEM or not text.startswith("heft: "):
            return f"ends with {code}: {text}"
        is_named = name in ALLOCATING and "no memory" in text
        if not is_named and os.strerror(error) not in text and "another program" not in text:
            return f"does not name the cause: {text}"
        why, is_new = self.judge.verdict(state_of(self.box))
        if why or without_shares(files) == self.scene.old:
            return why
        is_recovery = self.scene.args == ["edit", self.scene.main]
        if is_new and not is_recovery and "saved" not in text and "rolled back" not in text:
            return f"saves the new files, but says {text}"
        left = [n for n in files if LEFT.search(n) and not (is_new and n.endswith(NOTE))]
        return f"leaves {left}" if left and name not in CLEANING else None

    def wrong_from_then_on(self, code, text):
        why, is_new = self.judge.verdict(state_of(self.box))
        if not why and (code not in (0, SYSTEM) or (code == 0 and not is_new)):
            return f"ends with {code}: {text}"
        return why

    def fail(self, n, way):
        """Fail call n; return False if the command has fewer calls."""
        copy_folder(self.scene.start, self.box)
        name, code, out, text = self.run(n, way)
        if not name:
            return False
        self.cases += 1
        why = (self.wrong_from_then_on(code, text) if "HEFT_FAIL_ON" in way else self.wrong(
            way, name, code, out, text))
        if why:
            self.bad.append(f"call {n}, {name}, {' '.join(map('='.join, way.items()))}: {why}")
        return len(self.bad) < MAX_COMPLAINTS

    def count_calls(self):
        """Return the number of calls, found by halving an interval."""
        low, high = 0, 1024
        while high - low > 1:
            middle = (low + high) // 2
            copy_folder(self.scene.start, self.box)
            low, high = (middle, high) if self.run(middle, HALF)[0] else (low, middle)
        return low


def fail_calls(scene, root, options):
    """Return the number of failures, and complaints."""
    work = root / f"work {scene.title}"
    work.mkdir()
    campaign = Campaign(options, scene, work)
    rng = random.Random(f"{options.seed} {scene.title}")
    if options.full:
        for way in WAYS:
            any(not campaign.fail(n, way) for n in itertools.count(1))
    else:
        calls, end = campaign.count_calls(), time.monotonic() + options.each_seconds
        while campaign.cases < SHORT or time.monotonic() < end:
            if not campaign.fail(rng.randrange(calls) + 1, rng.choice(WAYS)):
                break
    campaign.commands.end()
    shutil.rmtree(work)
    return campaign.cases, campaign.bad


if __name__ == "__main__":
    sys.exit(run_campaign("failing system", fail_calls, parse_options("recorder")))
