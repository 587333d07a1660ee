#!/usr/bin/env python3
"""check_sudden_death.py HEFT COMMANDS SHIM [--full | --seconds N] [--seed N] [--only TEXT]: kill
each command that writes files at each system call that changes files.

record_calls.c (SHIM) kills the command before a call, and in the middle of a write. The folder must
have the old files or the new files, and half-written files must be refused until they are
recovered. The recovery is killed at each call, too. The command must then succeed and leave no
temporary files. --full also kills after each call, and kills the recovery of all contents, not only
of each list of names. --seconds kills command and recovery at random, several times in a row, until
the time is over. TAP and figures on stdout."""
import dataclasses
import itertools
import random
import shutil
import sys
import time

from campaign import parse_options, run_campaign
from commands import Commands
from crash_judge import Judge, state_of
from crash_scenes import KILLED, LEFT, Runner, contents, copy_folder
from power_model import read_calls

MAX_COMPLAINTS = 5
MAX_KILLS = 4  # in a row


class Campaign:
    """Kill the command of a scene."""

    def __init__(self, options, scene, work):
        self.scene, self.work = scene, work
        self.runner = Runner(options.heft, options.shim)
        self.commands = Commands(options.commands)
        self.is_full = options.full
        self.kinds = ("before", "half", "after") if self.is_full else ("before", "half")
        self.cases, self.bad, self.seen = 0, [], set()
        self.box = copy_folder(scene.start, work / "box")
        p = self.runner.run(self.box, scene, record=work / "calls")
        if p.returncode:
            raise RuntimeError(f"{scene.title} ends with {p.returncode}: {p.stderr.decode()}")
        self.good = contents(self.box)
        self.calls = read_calls(work / "calls")
        self.judge = Judge(self.commands, scene, work / "judged", self.good)
        self.recovery = dataclasses.replace(scene, args=["edit", scene.main])

    def complain(self, where, why):
        self.bad.append(f"{where}: {why}")

    def kills(self, folder, scene, reset, calls=None):
        """Yield the folder after each kill of the command, and the place of the kill."""
        for n in itertools.count(1):
            is_write = not calls or (n <= len(calls) and calls[n - 1].name == "write")
            for kind in self.kinds:
                if kind == "half" and not is_write:
                    continue
                reset()
                p = self.runner.run(folder, scene, kill_at=n, kill=kind)
                self.cases += 1
                if p.returncode != KILLED:
                    return
                yield f"killed {kind} call {n}"

    def check(self, folder, where):
        """Check the files after a kill; return the state if the files need recovery."""
        state = state_of(folder)
        why, _ = self.judge.verdict(state)
        if why:
            self.complain(where, why)
        return None if why or self.judge.is_settled(state) else state

    def is_first(self, files):
        key = hash(tuple(files))
        self.seen, before = self.seen | {key}, len(self.seen)
        return len(self.seen) > before

    def kill_recovery(self, state, where):
        folder = self.judge.folder

        def reset():
            self.judge.now = contents(folder)
            self.judge.put(state)

        for kill in self.kills(folder, self.recovery, reset):
            self.judge.now = contents(folder)
            self.check(folder, f"{where}, recovery {kill}")
        self.judge.now = contents(folder)

    def check_again(self, where):
        """The command must succeed after the old files are recovered."""
        self.commands.run("edit", str(self.box / self.scene.main))
        if self.judge.is_new(state_of(self.box)):
            return
        p = self.runner.run(self.box, self.scene)
        after = contents(self.box)
        left = [name for name in after if LEFT.search(name)]
        if p.returncode or after != self.good or left:
            self.complain(where, f"again: {p.returncode}, {left}, {p.stderr.decode()[:200]}")

    def kill_everywhere(self):
        for where in self.kills(self.box, self.scene, self.reset, self.calls):
            state = self.check(self.box, where)
            if state and self.is_first(sorted(state.items()) if self.is_full else sorted(state)):
                self.kill_recovery(state, where)
            if self.is_first(sorted(contents(self.box).items())):
                self.check_again(where)
            if len(self.bad) >= MAX_COMPLAINTS:
                return

    def reset(self):
        copy_folder(self.scene.start, self.box)

    def kill_at_random(self, rng):
        """Kill the command, then the recovery several times."""
        self.reset()
        where, scene, most = [], self.scene, len(self.calls)
        for _ in range(rng.randrange(MAX_KILLS) + 1):
            n, kind = rng.randrange(most) + 1, rng.choice(["before", "half", "after"])
            self.runner.run(self.box, scene, kill_at=n, kill=kind)
            where.append(f"{kind} call {n}")
            self.cases += 1
            self.check(self.box, f"killed {', then '.join(where)}")
            scene, most = self.recovery, 12
        self.check_again(f"killed {', then '.join(where)}")


def kill(scene, root, options):
    """Return number of kills, and complaints."""
    work = root / f"work {scene.title}"
    work.mkdir()
    campaign = Campaign(options, scene, work)
    rng = random.Random(f"{options.seed} {scene.title}")
    end = time.monotonic() + options.each_seconds
    campaign.kill_everywhere()
    while time.monotonic() < end and len(campaign.bad) < MAX_COMPLAINTS:
        campaign.kill_at_random(rng)
    campaign.commands.end()
    shutil.rmtree(work)
    return campaign.cases, campaign.bad


if __name__ == "__main__":
    sys.exit(run_campaign("sudden death", kill, parse_options()))
