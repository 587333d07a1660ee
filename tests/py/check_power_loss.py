#!/usr/bin/env python3
"""check_power_loss.py HEFT COMMANDS SHIM [--full | --seconds N] [--seed N] [--only TEXT]: lose the
power at each call of each command that writes files.

A command runs once, and record_calls.c (SHIM) records the system calls. power_model.py says which
states a power loss may leave. Each state is put into a folder, and COMMANDS (commands.c) reads and
recovers the files. The folder must have the old files or the new files, half-written files must be
refused until they are recovered, and after the exit status 0 the new files must be there. Then each
sync in turn is removed from the record: some state must be wrong, unless SPARE lists the sync. TAP
and figures on stdout."""
import copy
import os
import random
import shutil
import sys
import time

from campaign import parse_options, run_campaign
from commands import Commands
from crash_judge import Judge
from crash_scenes import SIMPLE_TITLE, Runner, contents, copy_folder
from power_model import Disk, read_calls

RANDOM_STATES = {"short": 150, "full": 10_000}  # per command
MAX_COMPLAINTS = 5
# Numbers of syncs that guard nothing in this model. After a rollback, the next edit syncs the
# folder again before it changes the file. When shards are replaced, the folder is synced before
# the old files are removed, so that a failing sync can still be undone, and again afterwards.
# The syncs of the records of shares matter to other shares only.
SPARE = {"edit after a kill": 1, "split again": 1, "complete: split again": 1,
         "convert by a share": 5, "replace by a share": 5}


class Campaign:
    """Check all states of a command."""

    def __init__(self, judge, start, calls):
        self.judge, self.start, self.calls = judge, start, calls  # start: the disk
        self.cases, self.bad = 0, []

    def check(self, state, done, calls, title):
        self.cases += 1
        why, is_new = self.judge.verdict(state)
        if not why and done == len(calls) and not is_new:
            why = "lost after exit status 0"
        if why:
            last = calls[done - 1].name if done else "the start"
            self.bad.append(f"{title} after call {done}, {last}: {why}")

    def disks(self, calls):
        disk = copy.deepcopy(self.start)
        yield 0, disk
        for done, call in enumerate(calls, 1):
            disk.do(call)
            yield done, disk

    def run(self, rng, count, deadline=None, skipped=None):
        """Check each prefix and `count` random states, again until the deadline."""
        calls = self.calls
        if skipped is not None:
            calls = calls[:skipped] + calls[skipped + 1:]
        while True:
            each = -(-count // (len(calls) + 1))
            for done, disk in self.disks(calls):
                for state in disk.plain_states():
                    self.check(state, done, calls, "power lost")
                for _ in range(each):
                    self.check(disk.random_state(rng), done, calls,
                               "power lost, random")
                if len(self.bad) >= MAX_COMPLAINTS:
                    return
            if not deadline or time.monotonic() > deadline:
                return


def spare_syncs(campaign, rng, count):
    """Return the syncs that can be removed from the record without a complaint."""
    spare = []
    for n, call in enumerate(campaign.calls):
        if call.name != "sync":
            continue
        less = Campaign(campaign.judge, campaign.start, campaign.calls)
        less.run(rng, count, skipped=n)
        campaign.cases += less.cases
        if not less.bad:
            spare.append(n + 1)
    return spare


def lose_power(scene, root, options):
    """Return number of states, and complaints."""
    work = root / f"work {scene.title.replace('/', ' ')}"
    work.mkdir()
    commands = Commands(options.commands)
    os.environ["TMPDIR"] = str(work)
    box = copy_folder(scene.start, work / "box")
    disk = Disk(box)
    p = Runner(options.heft, options.shim).run(box, scene, record=work / "calls")
    if p.returncode:
        raise RuntimeError(f"ends with {p.returncode}: {p.stderr.decode()}")
    judge = Judge(commands, scene, work / "judged", contents(box))
    campaign = Campaign(judge, disk, read_calls(work / "calls"))
    rng = random.Random(f"{options.seed} {scene.title}")
    deadline = time.monotonic() + options.each_seconds if options.each_seconds else None
    campaign.run(rng, RANDOM_STATES["full" if options.full else "short"], deadline)
    bad = campaign.bad
    if not bad:
        spare = spare_syncs(campaign, rng, RANDOM_STATES["short"])
        if len(spare) != SPARE.get(scene.title.removesuffix(SIMPLE_TITLE), 0):
            names = " ".join(f"{n}:{c.name}" for n, c in enumerate(campaign.calls, 1))
            bad = [f"no state is wrong without the syncs {spare} of {names}"]
    commands.end()
    shutil.rmtree(work)
    return campaign.cases, bad


if __name__ == "__main__":
    sys.exit(run_campaign("power loss", lose_power, parse_options()))
