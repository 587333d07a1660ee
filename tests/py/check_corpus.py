#!/usr/bin/env python3
"""check_corpus.py HEFT SHARED: run the conformance corpus of zTensor 2 and files of its library.

The files are optional, next to the checkout. Files in valid/ must open, files in reject/ must fail
verify, and canonical files must be rewritten with the same bytes. TAP on stdout."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

NEEDS_SHARD = {"shards-table.zt"}  # opens, but the shard is missing
WHEN_VERIFIED = {
    "csr-index-out-of-cols.zt", "bool-invalid-byte.zt", "f4-nonzero-odd-nibble.zt",
    "verify-digest-mismatch.zt"
}
CANONICAL = [
    "data/ztensor-conformance/valid/canonical-basic.zt",
    "fixtures/ztensor/good/ztensor2_canonical.zt"
]


def heft(*args):
    p = subprocess.run([HEFT, *args], capture_output=True, text=True, check=False)
    return p.returncode, (p.stderr or p.stdout).strip()[:200]


def valid(path):
    ls_status, output = heft("ls", "--json", str(path))
    if ls_status:
        yield f"ls ended with {ls_status}: {output}"
    status, output = heft("verify", str(path))
    if status != (1 if path.name in NEEDS_SHARD else 0):
        yield f"verify ended with {status}: {output}"


def rejected(path):
    ls_status, output = heft("ls", "--json", str(path))
    if ls_status != (0 if path.name in WHEN_VERIFIED else 3):
        yield f"ls ended with {ls_status}: {output}"
    status, output = heft("verify", str(path))
    if status != 1:
        yield f"verify ended with {status}: {output}"


def rewritten(path, out):
    status, output = heft("convert", "--format-version", "2", str(path), str(out))
    if status or out.read_bytes() != path.read_bytes():
        yield f"convert ended with {status}, or wrote another file: {output}"


def main():
    shared = pathlib.Path(sys.argv[2])
    corpus = shared / "data" / "ztensor-conformance"
    if not corpus.is_dir():
        print("1..0 # SKIP there is no conformance corpus beside the checkout")
        return 0
    results = [(f"valid/{p.name}", list(valid(p))) for p in sorted(corpus.glob("valid/*.zt"))]
    results += [(f"reject/{p.name}", list(rejected(p))) for p in sorted(corpus.glob("reject/*.zt"))]
    with tempfile.TemporaryDirectory() as scratch:
        for name in CANONICAL:
            path = shared / name
            if path.exists():
                results.append((f"rewritten {path.name}",
                                list(rewritten(path, pathlib.Path(scratch, path.name)))))
    return tap.report(results)


HEFT = sys.argv[1]
sys.exit(main())
