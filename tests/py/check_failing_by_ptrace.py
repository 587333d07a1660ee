#!/usr/bin/env python3
"""check_failing_by_ptrace.py HEFT COMMANDS RECORDER [--seconds N] [--seed N] [--only TEXT]: fail
system calls of each command that writes files with strace, at the boundary of the kernel.

The library of check_failing_system.py sees the calls that Heft makes by the functions of the C
library. strace also sees the calls that other libraries and the C library itself make, and calls
without a function. The results are judged alike. TAP and figures on stdout."""
import collections
import random
import re
import shutil
import subprocess
import sys
import time

import check_failing_system as failing
from campaign import parse_options, run_campaign
from crash_scenes import copy_folder

KINDS = ("openat read pread64 preadv write pwrite64 copy_file_range fsync ftruncate fallocate "
         "ioctl newfstatat fstat readlinkat getdents64 flock fchmod linkat renameat renameat2 "
         "unlinkat mmap mkdir close").split()
NAMES = {"pread64": "pread", "pwrite64": "pwrite", "newfstatat": "fstatat", "getdents64": "readdir"}
SHORT = 2  # failures per scene


class Campaign(failing.Campaign):
    """Fail the calls of a scene. `calls` lists (kind, number of the call)."""
    calls = []

    def strace(self, args, *options):
        trace = self.box.parent / "trace"
        p = subprocess.run(["strace", "-f", "-o", trace, "-e", "trace=" + ",".join(KINDS), *options,
                            self.heft, *args], cwd=self.box, capture_output=True, check=False)
        return trace.read_text(errors="replace"), p

    def count(self, args):
        """Return the number of calls of each kind in the main thread."""
        lines = self.strace(args)[0].splitlines()
        main = lines[0].split()[0]
        found = (re.match(rf"{main} +(\w+)\(", line) for line in lines)
        return collections.Counter(m[1] for m in found if m)

    def list_calls(self):
        """List the calls of the scene, without those that start the program."""
        before = self.count(["--version"])
        copy_folder(self.scene.start, self.box)
        self.calls = [(kind, n) for kind, total in self.count(self.args()).items()
                      for n in range(before[kind] + 1, total + 1)]

    def args(self):
        return [self.scene.args[0], "--no-sandbox", *self.scene.args[1:]]

    def run(self, n, way):
        """Return the name of the call that failed, exit status, stdout and stderr."""
        options, kind = [], ""
        if n:
            kind, when = self.calls[n - 1]
            number = way["HEFT_FAIL_ERRNO"]
            options = ["-e", f"inject={kind}:error={number}:when={when}"]
        trace, p = self.strace(self.args(), *options)
        name = NAMES.get(kind, kind) if "(INJECTED)" in trace else ""
        return name, p.returncode, p.stdout, p.stderr.decode(errors="replace")


def fail_calls(scene, root, options):
    """Return the number of failures, and complaints."""
    work = root / f"work {scene.title}"
    work.mkdir()
    campaign = Campaign(options, scene, work)
    campaign.list_calls()
    rng = random.Random(f"{options.seed} {scene.title}")
    end, tries = time.monotonic() + options.each_seconds, 0
    while tries < SHORT or time.monotonic() < end:
        tries += 1
        campaign.fail(rng.randrange(len(campaign.calls)) + 1, rng.choice(failing.ONCE))
    campaign.commands.end()
    shutil.rmtree(work)
    return campaign.cases, campaign.bad


def why_unavailable():
    if not shutil.which("strace"):
        return "there is no strace here"
    p = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "strace is not allowed here" if p.returncode else None


if __name__ == "__main__":
    reason = why_unavailable()
    if reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
    sys.exit(run_campaign("failing system by ptrace", fail_calls, parse_options()))
