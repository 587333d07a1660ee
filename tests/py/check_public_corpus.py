#!/usr/bin/env python3
"""check_public_corpus.py HEFT SAMPLES: the archive of `./dev corpus`, judged as other people would.

The archive is reproducible, Heft passes it, NumPy passes its part, and readers that are wrong in
one way fail. TAP on stdout."""
import pathlib
import shlex
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tools"))
import corpus  # noqa: E402
import tap  # noqa: E402

MOST = "4"  # files of each folder


def judged(root, reader, *more):
    """Run the archive's own runner; return (exit status, lines)."""
    p = subprocess.run([sys.executable, root / "run.py", "--reader", reader, *more],
                       capture_output=True, text=True, check=False)
    return p.returncode, p.stdout.splitlines() + p.stderr.splitlines()


def passes(root, reader, *more):
    status, lines = judged(root, reader, *more)
    wrong = [x for x in lines if x.startswith(("not ok", "Traceback")) and "TODO" not in x]
    return wrong[:20] or ([f"exit {status}"] if status else [])


def fails(root, reader, folder, least, *more):
    """Complain unless at least `least` files of the folder fail."""
    status, lines = judged(root, reader, "--format", folder, "--most", "4", *more)
    failures = sum(x.startswith("not ok") for x in lines)
    return [] if status == 1 and failures >= least else [f"exit {status}, {failures} failures"]


def is_reproducible(samples, scratch):
    archives = [scratch / "a.tar.xz", scratch / "b.tar.xz"]
    for path in archives:
        corpus.pack(path, samples)
    if archives[0].read_bytes() != archives[1].read_bytes():
        yield "two archives differ"
    with tarfile.open(archives[0]) as tar:
        members = tar.getmembers()
        names = [m.name for m in members]
        if names != sorted(names):
            yield "the members are not sorted"
        if any(m.mtime or m.uid or m.uname or not m.isfile() for m in members):
            yield "a member has a time or an owner"
        missing = {f"{corpus.TOP}/{n}" for n in corpus.OWN} - set(names)
        if missing:
            yield f"{missing} are missing"
        tar.extractall(scratch)


def main():
    heft, samples = shlex.quote(sys.argv[1]), pathlib.Path(sys.argv[2])
    python = shlex.quote(sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        root = scratch / corpus.TOP
        results = [("the archive is reproducible", list(is_reproducible(samples, scratch)))]
        results.append(("heft passes", passes(
            root, f"{heft} verify {{file}}", "--list", f"{heft} ls --json {{file}}",
            "--bytes", f"{heft} cat {{file}} -- {{tensor}}", "--most", MOST)))
        numpy = f"{python} {shlex.quote(str(root / 'numpy_reader.py'))} {{file}}"
        npz = ["--format", "npz", "--good"]
        if subprocess.run([sys.executable, "-c", "import numpy"], check=False).returncode == 0:
            known = ["--known", root / "numpy_known.txt", "--most", "24", "--format", "npy", *npz]
            results.append(("NumPy passes", passes(root, numpy, *known)))
            for key in ("name", "dtype", "sha256"):
                wrong = f"{numpy} | sed 's/\"{key}\": \"./&x/g'"
                results.append((f"a wrong {key} fails", fails(
                    root, f"sh -c {shlex.quote(wrong)}", "npz", 3, "--good")))
        results += [
            ("a reader that accepts everything fails", fails(root, "true {file}", "mag", 2)),
            ("a reader that refuses everything fails", fails(
                root, "false {file}", "mag", 4, "--good")),
            ("a reader that crashes fails", fails(root, "sh -c 'kill -9 $$' {file}", "mag", 8)),
            ("a reader that hangs fails", fails(
                root, "sleep 100", "mag", 8, "--timeout", "0.1")),
        ]
        return tap.report(results)


sys.exit(main())
