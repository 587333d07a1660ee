"""check_slow_files.py HEFT SLOW_FS LOAD_ALL: files on a file system with slow requests. TAP on stdout.

The file system counts requests, so that the test does not depend on time."""
import os
import pathlib
import subprocess
import sys
import tempfile

from slow_mount import mounted, obstacle

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "remote"))
from loopback import check, heft, safetensors, skip  # pylint: disable=wrong-import-position

SLOW_FS, LOAD_ALL = sys.argv[2:4]
KIB, MIB = 1 << 10, 1 << 20
TENSORS = {"first": os.urandom(40 * MIB), "second": os.urandom(40 * MIB), "third": b"123"}


def requests(folder, path):
    """How each way of reading appears to the file system; all ways give the same digests."""
    expected = [line.split()[0] for line in heft("hash", path)[1].splitlines()]
    for way in ("auto", "direct", "read", "map"):
        with mounted(SLOW_FS, folder, path, latency=5000, gather=0 if way == "map" else 6) as m:
            m.counts()
            code, out, err = heft("hash", "--access", way, m.path)
            number, size, largest, at_once = m.counts()
            shown = f"{number} requests, {size // number} bytes on average, {largest} at most, {at_once} at once"
            print(f"# {way}: {shown}")
            check(f"{way}: the digests are those of the local file",
                  code == 0 and [line.split()[0] for line in out.splitlines()] == expected, code, err)
            check(f"{way}: nothing is read twice", size < 1.1 * os.path.getsize(path), shown)
            if way in ("auto", "direct"):
                check(f"{way}: requests are large", size / number >= 256 * KIB and largest >= 512 * KIB, shown)
            if way != "map":
                check(f"{way}: several requests are sent at once", at_once >= 6, shown)
            else:
                check("map: requests are small", largest <= 256 * KIB, shown)
    with mounted(SLOW_FS, folder, path, latency=5000) as m:
        code, out, err = heft("cat", m.path, "third")
        number, size, *_ = m.counts()
        check("a small tensor needs few bytes", (code, out) == (0, b"123") and size < MIB, code, err, size)


def load_all(path):
    done = subprocess.run([LOAD_ALL, path], capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def many_parts(folder, path):
    """One call that reads all parts reads them straight, by more threads than there are processors."""
    with mounted(SLOW_FS, folder, path, latency=5000, gather=12) as m:
        code, out, err = load_all(m.path)
        number, size, _, at_once = m.counts()
        shown = f"{number} requests, {size // number} bytes on average, {at_once} at once"
        print(f"# many parts: {shown}")
        check("many parts: the bytes are those of the local file", (code, out) == (0, b"".join(TENSORS.values())),
              code, err)
        check("many parts: nothing is read twice", size < 1.1 * os.path.getsize(path), shown)
        check("many parts: more requests are sent at once than by reading ahead", at_once >= 12, shown)
    with mounted(SLOW_FS, folder, path, latency=1000, fail=os.path.getsize(path) // 2, errno=5) as m:
        code, _, err = load_all(m.path)
        check("many parts: error 5 at an offset", code == 1 and "Input/output error" in err, code, err)


def faults(folder, path):
    """Errors of the file system are messages and exit status 4."""
    middle = os.path.getsize(path) // 2 + 8 * MIB
    cases = ((5, "auto", "Input/output error"), (5, "read", "Input/output error"),
             (5, "map", "Input/output error"),
             (116, "auto", "the file was removed or replaced on its server"))
    for number, way, text in cases:
        with mounted(SLOW_FS, folder, path, latency=1000, fail=middle, errno=number) as m:
            code, _, err = heft("hash", "--access", way, m.path)
            check(f"{way}: error {number} at an offset", code == 4 and text in err, code, err)
            code, out, err = heft("cat", "--access", way, m.path, "first")
            check(f"{way}: tensors without the error are read", code == 0 and out == TENSORS["first"], code, err)
    for way in ("auto", "read", "map"):
        with mounted(SLOW_FS, folder, path, latency=1000, shrink=20) as m:
            code, _, err = heft("hash", "--access", way, m.path)
            check(f"{way}: a file that is truncated while it is read", code == 4 and "truncated" in err, code, err)


def main():
    reason = obstacle()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="heft-fuse-") as work:
        folder, path = os.path.join(work, "mount"), os.path.join(work, "model.safetensors")
        os.mkdir(folder)
        pathlib.Path(path).write_bytes(safetensors(TENSORS))
        with mounted(SLOW_FS, folder, path) as m:
            if not m:
                print("1..0 # SKIP the system does not mount file systems of FUSE")
                return 0
        requests(folder, path)
        many_parts(folder, path)
        faults(folder, path)
    import loopback
    print(f"1..{loopback.number}")
    return loopback.failures > 0


if __name__ == "__main__":
    sys.exit(main())
