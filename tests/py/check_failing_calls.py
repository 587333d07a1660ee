#!/usr/bin/env python3
"""check_failing_calls.py HEFT SHIM [--full]: system calls on files fail, in each command.

With EIO the command ends with 4, a message with the error, and the same folder as before; or says
that the result is saved, and the result is there; or can do without the call, as COMMANDS says.
For `heft scan` an unreadable file of a folder is a finding with the error. `heft edit` removes
files that the command leaves. With EINTR, if a file gets descriptor 0, and if the system cannot
copy between files, the command does the same as without a failure. If all calls from a call on
fail, the old or the new files are there after `heft edit`. Every call fails once; all calls fail
from every third call on, with --full from every call on. TAP on stdout."""
import collections
import concurrent.futures
import contextlib
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from boxes import CACHE, Box, contents, make_folders, safetensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

HEFT, SHIM = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:3])
STEP = 1 if "--full" in sys.argv else 3
SYSTEM = 4
MOST = 1000  # calls of a command
LONG = "x" * 9000  # too long for the header in place
REPEATED = {
    "copy_file_range", "fallocate", "flock", "fsync", "ftruncate", "getrandom", "openat", "pread",
    "preadv", "pwrite", "read", "write"
}
OPENING = {"fcntl", "openat"}
CANNOT_COPY = [errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM,
               errno.ENOTTY, errno.ETXTBSY]  # the command reads and writes the bytes instead
HALF = ["half.safetensors", "half.safetensors.heft-journal"]
UNCOUNTED = {"readdir", "getrandom"}  # ignored; their number depends on the folder
TEMPORARY = (".heft-new", ".heft-journal-new")  # left where removing fails, too
# Name, the file or folder that `heft edit` completes or rolls back, arguments, and how often a call
# may fail without consequence: a hint, a lock on a file system without locks, a temporary file of
# another kind, a mapping (the file is read instead), closing a file that is on disk, a repeated
# comparison of the open file with the name. `edit --set` locks the file twice: an interrupted edit
# is rolled back before the old value is read. `append` opens its file once before, to compare its
# format with the tensors; what goes wrong then is found again when the file is edited.
COMMANDS = [
    ("convert", None, ["convert", "-j1", "m.safetensors", "o.zt"],
     {"fallocate": 1, "fdopendir": 2, "flock": 1, "fstat": 2, "fstatat": 2, "lstat": 1,
      "fstatvfs": 1, "mmap": 1, "openat": 3, "stat": 5}),
    ("replace", None, ["convert", "-j1", "--force", "m.safetensors", "old.zt"],
     {"fallocate": 1, "fdopendir": 2, "flock": 1, "fstat": 2, "fstatat": 2, "mmap": 1,
      "fstatvfs": 1, "openat": 3, "stat": 10}),
    ("split", "o", ["split", "-j1", "--count", "2", "m.safetensors", "o"],
     {"close": 4, "fallocate": 2, "fdopendir": 3, "flock": 4, "fstat": 1, "fstatat": 4,
      "fstatvfs": 2, "lstat": 3, "mmap": 1, "openat": 7, "stat": 5, "unlinkat": 1}),
    ("split again", "set", ["split", "-j1", "--force", "--count", "3", "m.safetensors", "set"],
     {"close": 5, "fallocate": 3, "fdopendir": 4, "flock": 5, "fstat": 1, "fstatat": 5,
      "fstatvfs": 3, "lstat": 3, "mmap": 1, "openat": 8, "realpath": 1, "stat": 10, "unlinkat": 1}),
    ("edit in place", "m.safetensors", ["edit", "--set", "zz=1", "m.safetensors"],
     {"close": 3, "fdopendir": 4, "flock": 2, "fstat": 5, "fstatat": 5, "mmap": 2,
      "openat": 6, "realpath": 3, "stat": 2, "unlinkat": 1}),
    ("edit by a new file", "m.safetensors", ["edit", "--set", "zz=" + LONG, "m.safetensors"],
     {"close": 2, "fdopendir": 4, "flock": 3, "fstat": 5, "fstatat": 5, "mmap": 2,
      "openat": 7, "realpath": 3, "stat": 2}),
    ("edit after an interruption", "half.safetensors",
     ["edit", "--set", "license=six", "half.safetensors"],
     {"close": 3, "fdopendir": 4, "flock": 2, "fstat": 2, "fstatat": 5, "mmap": 2, "openat": 7,
      "realpath": 3, "stat": 1, "unlinkat": 1, "write": 1}),
    ("roll back", "half.safetensors", ["edit", "half.safetensors"],
     {"close": 1, "fdopendir": 2, "flock": 1, "openat": 2, "realpath": 2, "write": 1}),
    ("append by a new file", "m.safetensors",
     ["append", "-j1", "m.safetensors", "other.safetensors"],
     {"close": 3, "fallocate": 1, "fdopendir": 2, "flock": 3, "fstat": 10, "fstatat": 10,
      "fstatvfs": 1, "mmap": 5, "openat": 10, "realpath": 3, "stat": 4}),
    ("append in place", "c.zt", ["append", "-j1", "c.zt", "other.safetensors"],
     {"close": 4, "fallocate": 1, "fdopendir": 2, "flock": 2, "fstat": 10, "fstatat": 10,
      "fstatvfs": 1, "mmap": 5, "openat": 9, "realpath": 3, "stat": 4, "unlinkat": 1}),
    ("merge", None, ["merge", "-j1", "set", "o.gguf"],
     {"fallocate": 1, "fdopendir": 3, "flock": 1, "fstat": 5, "fstatat": 5, "lstat": 1,
      "fstatvfs": 1, "mmap": 3, "openat": 4, "stat": 3}),
    ("verify", None, ["verify", "set"],
     {"fstat": 4, "fstatat": 4, "mmap": 3, "realpath": 1, "stat": 1}),
    ("cat", None, ["cat", "c.zt", "layer.0.weight"],
     {"fstat": 1, "fstatat": 1, "mmap": 1, "stat": 1}),
    ("hash", None, ["hash", "m.safetensors"],
     {"fstat": 1, "fstatat": 1, "mmap": 1, "stat": 1}),
    ("verify a pipeline", None, ["verify", "pipeline"],
     {"fstat": 2, "fstatat": 4, "mmap": 2, "realpath": 1, "stat": 1}),
    ("scan", None, ["scan", "--json", "pipeline"], {"mmap": 5}),
    ("a model of the cache", None, ["ls", "hub:o/n"], {"fstat": 1, "fstatat": 1, "mmap": 1}),
    ("a download", None, ["verify", "--hub", f"{CACHE}/models--o--n"],
     {"realpath": 1, "stat": 7}),
    ("convert to a pipe", None, ["convert", "-j1", "--to", "safetensors", "c.zt", "-"],
     {"fstat": 4, "fstatat": 1, "mmap": 1, "stat": 7}),
]


def recover(box, name):
    """Return the folder after `heft edit` of the interrupted file or folder."""
    if name:
        subprocess.run([HEFT, "edit", name], cwd=box.folder, capture_output=True, check=False)
    return contents(box.folder)


def complaint(box, got, good, name, whole):
    """Return a complaint about a failed call, None, or "" if the failure had no consequence."""
    _, code, out, said, after = got
    text = said.decode(errors="replace")
    if code == 0:
        return "" if (out, after) == (good[2], good[4]) else "ends with 0, but does something else"
    if code == 1 and b"pickle/unreadable" in out and os.strerror(errno.EIO).encode() in out:
        return None if after == box.start else "changes files"
    if code != SYSTEM or not text.startswith("heft: ") or os.strerror(errno.EIO) not in text:
        return f"ends with {code}: {text[:200]}"
    if after == box.start:
        return None
    if after == good[4]:
        said_so = "saved, but " in text or "rolled back" in text
        return None if said_so else f"saves the result, but says {text[:200]}"
    return None if recover(box, name) in whole else f"leaves other files: {text}"


def leave_half_edited(model, folder):
    """Leave half.safetensors with the journal of an edit that failed while writing the bytes."""
    box = Box(HEFT, SHIM, model, folder)
    for n in range(1, 1000):
        box.run(["edit", "--set", "license=two", "half.safetensors"], n, fail_on=True)
        found = sorted(box.folder.glob("half.safetensors*"))
        if [p.name for p in found] == HALF:
            for p in found:
                shutil.copy(p, model)
            return
        box.reset()


def fail_each(box, args, calls, check, **how):
    """Fail each of the calls, or each call of the command, and return the names of all."""
    names = []
    for n in calls or range(1, MOST):
        got = box.run(args, n, **how)
        if got[0]:
            check(got, f"call {n}, {got[0]}")
        if contents(box.folder) != box.start:
            box.reset()
        if not got[0]:
            break
        names.append(got[0])
    return names


def check_command(box, name, args, tolerated):
    args = [args[0], "--no-sandbox", *args[1:]]  # a sandbox that fails is ignored
    good = box.run(args, 0)
    box.reset()
    if good[1]:
        return [f"ends with {good[1]}: {good[3].decode()}"]
    bad, ignored = [], collections.Counter()
    whole = box.start, good[4], recover(box, name)  # the last: an earlier edit was rolled back
    box.reset()

    def once(got, which):
        why = complaint(box, got, good, name, whole)
        ignored[got[0]] += why == "" and got[0] not in UNCOUNTED
        if why:
            bad.append(f"{which}: {why}")

    def interrupted(got, which):
        if got[1:] != good[1:]:
            bad.append(f"{which}, interrupted: {got[1]}, {got[3].decode()[:200]}")

    def copied(got, which):
        if got[1:] != good[1:]:
            bad.append(f"{which} cannot copy: {got[1]}, {got[3].decode()[:200]}")

    def numbered(got, which):
        if got[1:] != good[1:]:
            bad.append(f"{which}, of descriptor 0: {got[1]}, {got[3].decode()[:200]}")

    def from_then_on(got, which):
        after = recover(box, name)
        kept = {f: data for f, data in after.items() if not f.endswith(TEMPORARY)}
        if got[1] not in (0, SYSTEM) or kept not in whole:
            bad.append(f"{which} and all later: {got[1]}, {sorted(got[4])}, "
                       f"{got[3].decode()[:200]}")

    names = fail_each(box, args, None, once)
    repeated = [n for n, call in enumerate(names, 1) if call in REPEATED]
    opening = [n for n, call in enumerate(names, 1) if call in OPENING]
    fail_each(box, args, repeated, interrupted, HEFT_FAIL_ERRNO=str(errno.EINTR))
    copying = [n for n, call in enumerate(names, 1) if call == "copy_file_range"]
    for error in CANNOT_COPY if copying else []:
        fail_each(box, args, copying, copied, HEFT_FAIL_ERRNO=str(error))
    fail_each(box, args, opening, numbered, HEFT_FAIL_ERRNO="0")
    fail_each(box, args, range(1, MOST, STEP), from_then_on, fail_on=True)
    bad += [f"{n} failures of {call} are ignored, not {tolerated.get(call, 0)}"
            for call, n in sorted(ignored.items()) if n > tolerated.get(call, 0)]
    return bad


def main():
    os.environ["HF_HUB_CACHE"] = CACHE
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        model = root / "model"
        model.mkdir()
        (model / "m.safetensors").write_bytes(
            safetensors([f"layer.{i}.weight" for i in range(3)], format="pt"))
        (model / "other.safetensors").write_bytes(safetensors(["more"]))
        (model / "old.zt").write_bytes(b"old")
        make_folders(model)
        (model / "half.safetensors").write_bytes(safetensors(["w"], license="one"))
        with contextlib.suppress(OSError):  # none exist
            os.setxattr(model / "m.safetensors", "user.origin", b"a test")
        for made in (["convert", "--compress", "zstd", "m.safetensors", "c.zt"],
                     ["split", "--count", "2", "m.safetensors", "set"]):
            subprocess.run([HEFT, *made], cwd=model, check=True)

        leave_half_edited(model, root / "half")

        def one(i):
            title, name, args, tolerated = COMMANDS[i]
            box = Box(HEFT, SHIM, model, root / f"box{i}")
            return title, check_command(box, name, args, tolerated)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return tap.report(pool.map(one, range(len(COMMANDS))))


sys.exit(main())
