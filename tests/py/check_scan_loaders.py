#!/usr/bin/env python3
"""check_scan_loaders.py HEFT [CHANGED]: every file that a loader runs is a finding of heft scan.

The judges are the loaders themselves: Python, NumPy, PyTorch, joblib and pandas, as far as they
are installed. Each hostile file, and CHANGED files with random changes (300), makes a folder if it
is run; heft scan must end with 1 for each file that did. TAP on stdout."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import hostile_pickles

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

# Loaders of these kinds are part of Python and must run the plain files.
CERTAIN = {"GLOBAL; whole", "gzip", "bzip2", "xz", "zip, method 8", "tar, ustar", ".sav"}


def loaders_of(folder, elsewhere):
    worker = pathlib.Path(__file__).with_name("run_loaders.py")
    # A length in a file reserves up to 2 GiB. meson has the C library fill whatever is reserved,
    # which takes the time of the loader: bytes of bzip2, read as a pickle, reserve 825 MB.
    env = {**os.environ, "MALLOC_PERTURB_": "0"}
    p = subprocess.run([sys.executable, worker, folder], cwd=elsewhere, capture_output=True,
                       check=True, env=env)
    return json.loads(p.stdout)


def loaders_alone(name, data):
    """Load one file in a process of its own, in which no file before it has left anything."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        (pathlib.Path(folder) / name).write_bytes(data)
        return loaders_of(folder, elsewhere)["executed"][name]


def scanned(heft, folder):
    p = subprocess.run([heft, "scan", "--json", folder], capture_output=True, check=False)
    if p.returncode not in (0, 1):
        raise RuntimeError(f"heft scan ends with {p.returncode}: {p.stderr.decode()}")
    return {pathlib.Path(f["file"]).name: f for f in json.loads(p.stdout)}


def results(heft, rows):
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        files = {f"{i:05}{name}": (title, data) for i, (title, name, data) in enumerate(rows)}
        for name, (_, data) in files.items():
            (pathlib.Path(folder) / name).write_bytes(data)
        judged = loaders_of(folder, elsewhere)
        found = scanned(heft, folder)
    print("# loaders:", ", ".join(judged["loaders"]))
    print("# run by a loader:", sum(map(bool, judged["executed"].values())), "of", len(files))
    for name, (title, data) in files.items():
        by = judged["executed"][name]
        if not by and title in CERTAIN:
            by = loaders_alone(name, data)
        bad = [f"run by {', '.join(by)}, and no finding"] if by and found[name]["ok"] else []
        if not by and title in CERTAIN:
            bad.append("no loader runs the file: the test is wrong")
        yield title, bad


def main():
    heft = os.path.abspath(sys.argv[1])
    changed = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    rows = [*hostile_pickles.hostile(), *hostile_pickles.mutated(changed)]
    return tap.report(results(heft, rows))


if __name__ == "__main__":
    sys.exit(main())
