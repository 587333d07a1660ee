#!/usr/bin/env python3
"""check_interrupted.py HEFT: commands that are killed at a system call, or of which one fails, under strace.  What they
leave behind is read as the old model or as the new one, or is refused until it is completed.  TAP on stdout."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gen_shards as gen

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

ENDED_BY_KILL = (-9, 137)
NOT_LOADED = 127  # the loader found no library
CALLS = ("?renameat", "renameat2", "linkat", "unlinkat", "fsync")  # each is counted by itself


class Wrong(Exception):
    pass


def demand(truth, complaint):
    if not truth:
        raise Wrong(str(complaint))


def run(*args, env=None):
    return subprocess.run(list(map(str, args)), capture_output=True, timeout=120, check=False,
                          env=env)


def heft(*args, code=0):
    p = run(HEFT, *args)
    demand(p.returncode == code,
           f"{args}: exit {p.returncode}, not {code}: {p.stderr.decode()[:300]}")
    return p


def inject(what, *args):
    env = dict(os.environ)  # leaks are not looked for in a process that is traced
    env["ASAN_OPTIONS"] = ":".join(filter(None, (env.get("ASAN_OPTIONS"), "detect_leaks=0")))
    return run("strace", "-f", "-o", "/dev/null", "-e", f"inject={what}", HEFT, *args, env=env)


def model(path, seed):
    """The same names and sizes whatever the seed: a mixture would be a model, too."""
    tensors = {
        f"t{i}": ("U8", [400], bytes((seed + i + k) % 251 for k in range(400))) for i in range(6)
    }
    path.write_bytes(gen.pack(tensors))
    return path


def digest(path):
    return heft("hash", path).stdout.splitlines()[-1]


def files_in(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


class Set:
    """A folder with a set, what it is, and what it will be."""

    def __init__(self, top, count):
        self.folder, self.a, self.b = top / "S", model(top / "a.safetensors",
                                                       1), model(top / "b.safetensors", 99)
        self.count = count
        for name, path in (("old", self.a), ("new", self.b)):
            if count:
                heft("split", "-f", "-n", 3, path, self.folder)
            elif name == "new":
                heft("split", "-n", 3, path, self.folder)
            else:
                self.folder.mkdir()
            setattr(self, name, files_in(self.folder))

    def reset(self):
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name, data in self.old.items():
            (self.folder / name).write_bytes(data)

    def judge(self, title):
        pending = (self.folder / "heft-set.journal").exists()
        if pending:
            heft("verify", self.folder, code=4)
            for name in self.new:
                heft("ls", self.folder / name, code=4)
            demand(b"completed" in heft("edit", self.folder).stderr, f"{title}: not completed")
        else:
            run(HEFT, "edit", self.folder)  # removes what was staged
        now = files_in(self.folder)
        demand(now in (self.old, self.new), f"{title}: a mixture, or more: {sorted(now)}")
        if now:
            demand(
                digest(self.folder) == digest(self.a if now == self.old else self.b),
                f"{title}: another model")
            heft("verify", self.folder)
        return pending


def split_is_killed(top, exists):
    s, seen = Set(top, exists), 0
    for call in CALLS:
        killed = True
        for n in range(1, 100):
            if not killed:
                break
            s.reset()
            p = inject(f"{call}:signal=KILL:when={n}", "split", "-f", "-n", 3, s.b, s.folder)
            killed = p.returncode in ENDED_BY_KILL
            seen += s.judge(f"killed at {call} {n}")
            demand(killed or (p.returncode == 0 and files_in(s.folder) == s.new), p.stderr)
    demand(seen >= len(s.new), f"only {seen} kills left a journal")


def split_fails(top, exists):
    s = Set(top, exists)
    for call in CALLS:
        for n in range(1, 10):
            s.reset()
            p = inject(f"{call}:error=EIO:when={n}", "split", "-f", "-n", 3, s.b, s.folder)
            demand(p.returncode in (0, 4), f"{call} {n}: exit {p.returncode}: {p.stderr}")
            s.judge(f"EIO at {call} {n}")


def lookups_fail(top):
    """Of a half edited file: whatever fails, it is not read."""
    path, journal = top / "m.safetensors", top / "m.safetensors.heft-journal"
    model(path, 1)
    p = inject("pwrite64:signal=KILL:when=2", "edit", "--rename", "t1=x1", path)
    demand(p.returncode in ENDED_BY_KILL and journal.exists(), f"no journal: {p.stderr}")
    for what in ("readlink", "newfstatat", "getcwd", "lstat"):
        for when in ("1+", *range(1, 12)):
            p = inject(f"{what}:error=EIO:when={when}", "verify", path)
            demand(p.returncode in (4, NOT_LOADED),
                   f"{what} {when}: exit {p.returncode}: {p.stdout}")
    heft("edit", path)
    heft("verify", path)


def replaced_with_a_journal(top):
    """convert --force over a half edited file: killed at each call, it is the old one with its journal or the new one."""
    path, journal, b = top / "m.safetensors", top / "m.safetensors.heft-journal", model(
        top / "b.safetensors", 99)
    model(path, 1)
    p = inject("pwrite64:signal=KILL:when=2", "edit", "--rename", "t1=x1", path)
    demand(p.returncode in ENDED_BY_KILL and journal.exists(), f"no journal: {p.stderr}")
    old = files_in(top)
    heft("convert", "-f", b, path)
    heft("verify", path)
    demand(not journal.exists() and digest(path) == digest(b), "the journal stays")
    for call, n in ((call, n) for call in CALLS for n in range(1, 6)):
        for name in files_in(top):
            (top / name).unlink()
        for name, data in old.items():
            (top / name).write_bytes(data)
        inject(f"{call}:signal=KILL:when={n}", "convert", "-f", b, path)
        if path.read_bytes() == old[path.name]:
            demand(journal.read_bytes() == old[journal.name],
                   f"{call} {n}: the journal is another one")
            heft("verify", path, code=4)
            heft("edit", path)
            demand(
                digest(path) == digest(model(top / "a.safetensors", 1)), f"{call} {n}: not undone")
        else:
            heft("verify", path)
            demand(digest(path) == digest(b), f"{call} {n}: another model")
            run(HEFT, "edit", path)
            demand(
                digest(path) == digest(b) and not journal.exists(),
                f"{call} {n}: the journal stays")


CHECKS = {
    "a split is killed": lambda top: split_is_killed(top, True),
    "a split into a new folder is killed": lambda top: split_is_killed(top, False),
    "a split fails": lambda top: split_fails(top, True),
    "a question that the system does not answer": lookups_fail,
    "a half edited file is replaced": replaced_with_a_journal,
}


def judge(check):
    with tempfile.TemporaryDirectory(prefix="heft-interrupted-") as folder:
        try:
            check(pathlib.Path(folder))
        except (Wrong, OSError, subprocess.SubprocessError) as e:
            return [f"{type(e).__name__}: {e}"]
    return []


def main():
    if not shutil.which("strace") or run("strace", "-o", "/dev/null", "true").returncode:
        print("1..0 # SKIP strace is missing, or may not trace")
        return 0
    return tap.report((title, judge(check)) for title, check in CHECKS.items())


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
