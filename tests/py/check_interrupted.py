#!/usr/bin/env python3
"""check_interrupted.py HEFT: kill commands at system calls, or make the calls fail, with strace.

The remaining files must be the old model or the new model, or must be refused until heft edit
completes the change. TAP on stdout."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from checks import CheckFailed, require
import gen_shards as gen

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

ENDED_BY_KILL = (-9, 137)
NOT_LOADED = 127  # the loader found no library
# strace counts each call separately
CALLS = ("?renameat", "renameat2", "linkat", "unlinkat", "fsync")


def run(*args, env=None):
    return subprocess.run(list(map(str, args)), capture_output=True, timeout=120, check=False,
                          env=env)


def heft(*args, code=0):
    p = run(HEFT, *args)
    require(p.returncode == code,
           f"{args}: exit {p.returncode}, not {code}: {p.stderr.decode()[:300]}")
    return p


def inject(what, *args):
    env = dict(os.environ)  # leaks are not looked for in a process that is traced
    env["ASAN_OPTIONS"] = ":".join(filter(None, (env.get("ASAN_OPTIONS"), "detect_leaks=0")))
    return run("strace", "-f", "-o", "/dev/null", "-e", f"inject={what}", HEFT, *args, env=env)


def model(path, seed):
    """Write a model whose names and sizes do not depend on the seed: a mixture of two would open
    too."""
    tensors = {
        f"t{i}": ("U8", [400], bytes((seed + i + k) % 251 for k in range(400))) for i in range(6)
    }
    path.write_bytes(gen.pack(tensors))
    return path


def digest(path):
    return heft("hash", path).stdout.splitlines()[-1]


def files_in(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


class InterruptedSet:
    """A folder of shards with the files before and after a split."""

    def __init__(self, scratch, count):
        self.folder, self.a, self.b = scratch / "S", model(scratch / "a.safetensors",
                                                       1), model(scratch / "b.safetensors", 99)
        self.count = count
        for name, path in (("old", self.a), ("new", self.b)):
            if count:
                heft("split", "-f", "--count", 3, path, self.folder)
            elif name == "new":
                heft("split", "--count", 3, path, self.folder)
            else:
                self.folder.mkdir()
            setattr(self, name, files_in(self.folder))

    def reset(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, data in self.old.items():
            (self.folder / name).write_bytes(data)

    def check_folder(self, title):
        pending = (self.folder / "heft-set.journal").exists()
        if pending:
            heft("verify", self.folder, code=4)
            for name in self.new:
                heft("ls", self.folder / name, code=4)
            require(b"completed" in heft("edit", self.folder).stderr, f"{title}: not completed")
        else:
            run(HEFT, "edit", self.folder)  # removes staged files
        now = files_in(self.folder)
        require(now in (self.old, self.new), f"{title}: a mixture of files: {sorted(now)}")
        if now:
            require(
                digest(self.folder) == digest(self.a if now == self.old else self.b),
                f"{title}: a different model")
            heft("verify", self.folder)
        return pending


def split_is_killed(scratch, exists):
    s, journals = InterruptedSet(scratch, exists), 0
    for call in CALLS:
        killed = True
        for n in range(1, 100):
            if not killed:
                break
            s.reset()
            p = inject(f"{call}:signal=KILL:when={n}", "split", "-f", "--count", 3, s.b, s.folder)
            killed = p.returncode in ENDED_BY_KILL
            journals += s.check_folder(f"killed at {call} {n}")
            require(killed or (p.returncode == 0 and files_in(s.folder) == s.new), p.stderr)
    require(journals >= len(s.new), f"only {journals} kills left a journal")


def split_fails(scratch, exists):
    s = InterruptedSet(scratch, exists)
    for call in CALLS:
        for n in range(1, 10):
            s.reset()
            p = inject(f"{call}:error=EIO:when={n}", "split", "-f", "--count", 3, s.b, s.folder)
            require(p.returncode in (0, 4), f"{call} {n}: exit {p.returncode}: {p.stderr}")
            s.check_folder(f"EIO at {call} {n}")


def lookups_fail(scratch):
    """A file with a journal must be refused whichever lookup fails."""
    path, journal = scratch / "m.safetensors", scratch / "m.safetensors.heft-journal"
    model(path, 1)
    p = inject("pwrite64:signal=KILL:when=2", "edit", "--rename", "t1=x1", path)
    require(p.returncode in ENDED_BY_KILL and journal.exists(), f"no journal: {p.stderr}")
    for what in ("readlink", "newfstatat", "getcwd", "lstat"):
        for when in ("1+", *range(1, 12)):
            p = inject(f"{what}:error=EIO:when={when}", "verify", path)
            require(p.returncode in (4, NOT_LOADED),
                   f"{what} {when}: exit {p.returncode}: {p.stdout}")
    heft("edit", path)
    heft("verify", path)


def replaced_with_a_journal(scratch):
    """convert --force replaces a half-edited file.

    After a kill at any call there is the old file with the old journal, or the new file."""
    path, journal, b = scratch / "m.safetensors", scratch / "m.safetensors.heft-journal", model(
        scratch / "b.safetensors", 99)
    model(path, 1)
    p = inject("pwrite64:signal=KILL:when=2", "edit", "--rename", "t1=x1", path)
    require(p.returncode in ENDED_BY_KILL and journal.exists(), f"no journal: {p.stderr}")
    old = files_in(scratch)
    heft("convert", "-f", b, path)
    heft("verify", path)
    require(not journal.exists() and digest(path) == digest(b), "the journal is left")
    for call, n in ((call, n) for call in CALLS for n in range(1, 6)):
        for name in files_in(scratch):
            (scratch / name).unlink()
        for name, data in old.items():
            (scratch / name).write_bytes(data)
        inject(f"{call}:signal=KILL:when={n}", "convert", "-f", b, path)
        if path.read_bytes() == old[path.name]:
            require(journal.read_bytes() == old[journal.name],
                   f"{call} {n}: the journal differs")
            heft("verify", path, code=4)
            heft("edit", path)
            require(
                digest(path) == digest(model(scratch / "a.safetensors", 1)),
                f"{call} {n}: not rolled back")
        else:
            heft("verify", path)
            require(digest(path) == digest(b), f"{call} {n}: a different model")
            run(HEFT, "edit", path)
            require(
                digest(path) == digest(b) and not journal.exists(),
                f"{call} {n}: the journal is left")


CHECKS = {
    "a killed split is completed or undone": lambda scratch: split_is_killed(scratch, True),
    "a killed split into a new folder is "
    "completed or undone": lambda scratch: split_is_killed(scratch, False),
    "a failing split is completed or undone": lambda scratch: split_fails(scratch, True),
    "failing lookups keep a half-edited file unread": lookups_fail,
    "convert --force replaces a half-edited file": replaced_with_a_journal,
}


def run_check(check):
    with tempfile.TemporaryDirectory(prefix="heft-interrupted-") as folder:
        try:
            check(pathlib.Path(folder))
        except (CheckFailed, OSError, subprocess.SubprocessError) as e:
            return [f"{type(e).__name__}: {e}"]
    return []


def main():
    if not shutil.which("strace") or run("strace", "-o", "/dev/null", "true").returncode:
        print("1..0 # SKIP strace is missing, or may not trace")
        return 0
    return tap.report((title, run_check(check)) for title, check in CHECKS.items())


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
