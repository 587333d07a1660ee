#!/usr/bin/env python3
"""check_numpy.py HEFT COMMANDS: read NumPy's files with Heft, and Heft's files with NumPy.

TAP on stdout; skipped without NumPy."""
import hashlib
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

from commands import Commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

TYPES = {
    "?": "bool", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "f2": "f16", "u4": "u32",
    "i4": "i32", "f4": "f32", "u8": "u64", "i8": "i64", "f8": "f64", "c8": "c64", "c16": "c128"
}
SHAPES = [(), (1,), (0,), (5,), (3, 4), (2, 0, 3), (4, 1, 3, 2), (64, 65), (1,) * 32]
UNSUPPORTED = {
    "objects": np.array([{}, None],
                        dtype=object), "text": np.array(["a", "bc"]), "bytes": np.array([b"a"]),
    "dates": np.array(["2020-01-01"], dtype="M8[D]"), "spans": np.array([3], dtype="m8[s]"),
    "records": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]), "void": np.zeros(3, dtype="V3"),
    "extended": np.zeros(3, dtype="g"), "extended_complex": np.zeros(3, dtype="G")
}


def heft(*args, code=0):
    p = COMMANDS.run(*map(str, args), text=False)
    if p.returncode != code:
        raise AssertionError(
            f"{' '.join(map(str, args))} ended with {p.returncode}: {p.stderr.decode()[:200]}")
    return p


def random_array(dtype, shape, order, layout):
    rng = np.random.default_rng(zlib.crc32(repr((dtype, shape)).encode()))
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    data = rng.integers(0, 2 if dtype == "?" else 256, count * kind.itemsize, dtype="u1").tobytes()
    a = np.frombuffer(data, dtype=kind.newbyteorder("<")).reshape(shape)
    a = a.astype(kind.newbyteorder(order)) if order == ">" else a
    return np.asfortranarray(a) if layout == "F" else a


def plain_bytes(a):
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes()


def compare(path, arrays, code=0):
    listed = {t["name"]: t for t in json.loads(heft("ls", "--json", path).stdout)["tensors"]}
    if set(listed) != set(arrays):
        yield f"names are {sorted(listed)}"
        return
    for name, a in arrays.items():
        t = listed[name]
        if t["shape"] != list(a.shape) or t["dtype"] != TYPES[a.dtype.str[1:].replace("b1", "?")]:
            yield f"{name}: {t['dtype']} {t['shape']}, not {a.dtype} {a.shape}"
        if hashlib.sha256(heft("cat", path, "--", name).stdout).digest() != hashlib.sha256(
                plain_bytes(a)).digest():
            yield f"{name}: bytes differ"
    heft("verify", path, code=code)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype.newbyteorder("<") and plain_bytes(
        a) == plain_bytes(b)


def arrays_of(order, layout):
    return {f"{dtype} {i}".replace("?", "bool"): random_array(dtype, shape, order, layout)
            for dtype in TYPES for i, shape in enumerate(SHAPES)}


def check_archive(root, save, order, layout):
    path, out = root / "in.npz", root / "out.npz"
    arrays = arrays_of(order, layout)
    save(path, **arrays)
    yield from compare(path, arrays)
    heft("convert", "--force", path, out)
    with np.load(out) as z:
        if z.files != list(arrays):
            yield "written: names differ"
        yield from (f"written: {n} differs" for n in arrays if not same(z[n], arrays[n]))
    with zipfile.ZipFile(out) as z:
        if z.testzip():
            yield f"written: {z.testzip()} has a wrong CRC-32"
    with subprocess.Popen([HEFT, "convert", "--force", "--to", "npz", path, "/dev/stdout"],
                          stdout=subprocess.PIPE) as p:
        if p.stdout.read() != out.read_bytes():
            yield "a pipe and a file get different bytes"


def check_files(root, order, layout):
    for dtype in TYPES:
        for shape in SHAPES:
            a = random_array(dtype, shape, order, layout)
            path, out = root / "in.npy", root / "out.npy"
            np.save(path, a)
            heft("convert", "--force", path, out)
            if not same(np.load(out), a):
                yield f"{dtype} {shape} differs"
            if a.size and a.shape and not same(np.load(out, mmap_mode="r"), a):
                yield f"{dtype} {shape} differs when mapped"


def members_of(path):
    """Return {name: (method, size, CRC-32, stored bytes)}."""
    out = {}
    with zipfile.ZipFile(path) as z, path.open("rb") as f:
        for i in z.infolist():
            f.seek(i.header_offset + 26)
            name, extra = struct.unpack("<HH", f.read(4))
            f.seek(name + extra, 1)
            out[i.filename] = (i.compress_type, i.file_size, i.CRC, f.read(i.compress_size))
    return out


def check_edits(root, layout):
    """Rename members; the stored bytes of compressed members must not change."""
    arrays = {k: v for k, v in arrays_of("<", layout).items() if v.size < 5000}
    names = list(arrays)
    path = root / "edited.npz"
    np.savez_compressed(path, **arrays)
    with zipfile.ZipFile(path, "a") as z:  # an additional member without compression
        with z.open(zipfile.ZipInfo("plain.npy"), "w") as f:
            np.lib.format.write_array(f,
                                      np.asfortranarray(random_array("f4", (64, 65), "<", layout)))
    arrays["plain"] = random_array("f4", (64, 65), "<", layout)
    before = members_of(path)
    new = {
        names[0]: "caf\u00e9/" + "long" * 50, names[1]: names[2], names[2]: names[1], "plain": "p"
    }
    heft("edit", *(a for old, to in new.items() for a in ("--rename", f"{old}={to}")), path)
    after = members_of(path)
    want = {new.get(n[:-4], n[:-4]) + ".npy": m for n, m in before.items()}
    if list(after) != list(want):
        yield f"members are {list(after)}"
    if any(after[n] != m for n, m in want.items() if m[0] == zipfile.ZIP_DEFLATED):
        yield "stored bytes of a compressed member differ"
    renamed = {new.get(n, n): a for n, a in arrays.items()}
    with np.load(path) as z:
        yield from (f"{n} differs" for n, a in renamed.items() if not same(z[n], a))
        if z["p"].flags.f_contiguous is not True:
            yield "the order of the uncompressed array differs"
    with zipfile.ZipFile(path) as z:
        if z.testzip():
            yield f"{z.testzip()} has a wrong CRC-32"
    yield from compare(path, renamed)
    original = path.read_bytes()
    heft("edit", *(a for old, to in new.items() for a in ("--rename", f"{to}={old}")), path)
    heft("edit", *(a for old, to in new.items() for a in ("--rename", f"{old}={to}")), path)
    if path.read_bytes() != original:
        yield "renaming back does not restore the file"
    inode = path.stat().st_ino
    heft("edit", "--rename", "p=q", path)
    if path.stat().st_ino != inode:
        yield "a name of the same length was not changed in place"


def check_edits_of_others(root):
    """Refuse an edit that would lose data, and keep the file."""
    path = root / "others.npz"
    np.savez_compressed(path, a=np.arange(5, dtype=">f4"))
    original = path.read_bytes()
    p = heft("edit", "--rename", "a=b", path, code=5)
    if b"big-endian" not in p.stderr or path.read_bytes() != original:
        yield p.stderr
    np.savez_compressed(path, a=np.arange(5, dtype="<f4"))
    with zipfile.ZipFile(path, "a") as z:
        z.writestr("notes.txt", "text")
    original = path.read_bytes()
    heft("edit", "--rename", "a=b", path, code=5)
    if path.read_bytes() != original:
        yield "a refused edit changed the file"


def check_versions(root):
    a = random_array("f4", (3, 4), "<", "F")
    for version in ((1, 0), (2, 0), (3, 0)):
        path = root / "v.npy"
        with path.open("wb") as f:
            np.lib.format.write_array(f, a, version=version)
        yield from compare(path, {"data": a})


def findings(path, rule, code=0):
    found = json.loads(heft("verify", "--json", path, code=code).stdout)["findings"]
    return [f for f in found if f["rule"] == rule]


def check_unsupported(root):
    """Refuse a file with a single unsupported array; otherwise read the others and warn."""
    path, out = root / "u.npz", root / "u_out.npz"
    fine = {"before": np.arange(3.0), "z": np.ones((2, 2), dtype="f4")}
    for name, a in UNSUPPORTED.items():
        np.save(root / "u.npy", a)
        heft("verify", root / "u.npy", code=5)
        for save in (np.savez, np.savez_compressed):
            save(path, x=a)
            messages = heft("ls", path, code=5).stderr.decode()
            if "array 'x'" not in messages:
                yield f"{name}: {messages}"
            save(path, before=fine["before"], x=a, z=fine["z"])
            yield from compare(path, fine)
            found = findings(path, "npz/unreadable")
            if [f["severity"] for f in found] != ["warning"] or "array 'x'" not in found[0]["text"]:
                yield f"{name}: found are {found}"
            if b"array 'x'" not in heft("convert", "--force", path, out).stderr:
                yield f"{name}: the dropped member is not reported"
            heft("convert", "--force", "--strict", path, root / "strict.npz", code=5)
            with np.load(out) as z:
                if z.files != list(fine) or not all(same(z[n], a) for n, a in fine.items()):
                    yield f"{name}: written are {z.files}"


def npy_of(a):
    f = io.BytesIO()
    np.lib.format.write_array(f, a)
    return f.getvalue()


def loads(z, name):
    try:
        a = z[name]
    except Exception:  # NumPy and zipfile raise many types of errors
        return None
    return a if isinstance(
        a, np.ndarray) and a.dtype.kind in "biufc" and a.dtype.itemsize < 16 else None


def write_members(path, members, method):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in members.items():
            z.writestr(name + ".npy", data)


def check_damaged(path, whole, method):
    """A damaged array is damage, although NumPy loads the others."""
    for name, data in {
        "cut": whole[:-1], "header": whole[:30], "magic": b"no array", "empty": b"",
        "descr": whole.replace(b"'<i4'", b"'<x4'"), "shape": whole.replace(b"(100,)", b"(-10,)")
    }.items():
        write_members(path, {"a": whole, name: data, "b": whole}, method)
        with np.load(path, allow_pickle=False) as z:
            loaded = [n for n in z.files if loads(z, n) is not None]
        if loaded != ["a", "b"]:
            yield f"{name}: NumPy loads {loaded}"
        for command in ("ls", "stats", "hash"):
            heft(command, path, code=3)
        if not findings(path, "npz/structure", code=1):
            yield f"{name}: the damage is not reported"


def check_mixed(root):
    """List the arrays of an archive that NumPy loads without pickles."""
    path, whole = root / "mixed.npz", npy_of(np.arange(100, dtype="i4"))
    f = io.BytesIO()
    np.lib.format.write_array(f, UNSUPPORTED["objects"], allow_pickle=True)
    members = {
        "a": whole, "objects": f.getvalue(), "text": npy_of(UNSUPPORTED["text"]),
        "records": npy_of(UNSUPPORTED["records"]), "b": whole
    }
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        write_members(path, members, method)
        with np.load(path, allow_pickle=False) as z:
            loaded = {n: a for n in z.files if (a := loads(z, n)) is not None}
        if list(loaded) != ["a", "b"]:
            yield f"NumPy loads {list(loaded)}"
        yield from compare(path, loaded)
        if len(findings(path, "npz/unreadable")) != len(members) - len(loaded):
            yield "not every unreadable member is reported"
        yield from check_damaged(path, whole, method)


def nameless(kind, a):
    """Return the array as NumPy stores types that it does not know."""
    whole = npy_of(a)
    old, new = a.dtype.str.encode(), kind.encode()
    return whole.replace(b"'" + old + b"'", b"'" + new + b"'" + b" " * (len(old) - len(new)))


def says(word, *args, code):
    p = heft(*args, code=code)
    return [] if word in p.stderr else [f"{args} says {p.stderr}, not {word}"]


def check_views(root):
    """--view names the types of arrays without one, in files, archives and shards."""
    half, single = np.array([1, 2], "<f2"), np.array([1, 2], "<f4")
    path, one = root / "nameless.npz", root / "nameless.npy"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("w.npy", nameless("|V2", half))
        z.writestr("q.npy", nameless("|V4", single))
        z.writestr("s.npy", npy_of(single))
    one.write_bytes(nameless("|V2", half))
    yield from compare_views(path, ("--view", "w=f16", "--view", "q=float32"), w=half, q=single)
    yield from compare_views(path, ("--view", "q=f32", "--view", "*=u16"), w=half.view("<u2"),
                             q=single)
    yield from compare_views(path, (), s=single)
    yield from compare_views(one, ("--view", "data=f16"), data=half)
    yield from says(b"has a type, f32", "ls", "--view", "s=u32", path, code=2)
    yield from says(b"have 2 bytes", "ls", "--view", "w=f32", path, code=2)
    yield from says(b"have 1 byte,", "ls", "--view", "data=f4_e2m1", write(
        root / "byte.npy", nameless("|V1", np.arange(2, dtype="|u1"))), code=2)
    yield from says(b"w=f17", "ls", "--view", "w=f17", path, code=2)
    yield from says(b"--view", "ls", "--view", "f16", path, code=2)
    yield from says(b"matches --view 'none'", "ls", "--view", "none=f16", path, code=0)
    yield from says(b"matches --view 'none'", "verify", "--strict", "--view", "none=f16", path,
                    code=2)
    heft("convert", "--view", "*=f16", one, root / "viewed.npy")
    if not same(np.load(root / "viewed.npy"), half):
        yield "a conversion of an array that is viewed as f16"
    heft("diff", "--view", "data=f16", one, root / "viewed.npy")
    shards = root / "shards"
    shards.mkdir()
    for i in (1, 2):
        with zipfile.ZipFile(shards / f"m-0000{i}-of-00002.npz", "w") as z:
            z.writestr(f"w{i}.npy", nameless("|V2", half))
    yield from compare_views(shards, ("--view", "w?=f16"), w1=half, w2=half)


def write(path, data):
    path.write_bytes(data)
    return path


def compare_views(path, views, **arrays):
    for name, a in arrays.items():
        if heft("cat", *views, path, "--", name).stdout != plain_bytes(a):
            yield f"{path.name} {views}: {name} has other bytes"
    listed = json.loads(heft("ls", "--json", *views, path).stdout)["tensors"]
    types = {t["name"]: t["dtype"] for t in listed}
    yield from (f"{path.name} {views}: {n} is {types.get(n)}" for n, a in arrays.items()
                if types.get(n) != TYPES[a.dtype.str[1:]])


def check_names(root):
    """Report names that are unsafe to unpack, and write them so that NumPy finds them."""
    path, out = root / "names.npz", root / "names_out.npz"
    names = ["../up", "a/../b", "/etc/x", "a\\b", "C:x", "esc\x1b[0m", "c1\x85", "..", "plain"]
    with zipfile.ZipFile(path, "w") as z:
        for i, n in enumerate(names):
            z.writestr(n + ".npy", npy_of(np.arange(i, dtype="f4")))
    risky = names[:-2]
    if [f["tensor"] for f in findings(path, "npz/name")] != risky:
        yield f"found are {findings(path, 'npz/name')}"
    messages = heft("convert", "-v", "--force", path, out).stderr.decode()
    if messages.count("warning: the name has") != len(risky):
        yield messages
    heft("convert", "--strict", path, root / "strict_names.npz", code=5)
    with np.load(out) as z:
        if z.files != names or not all(
                same(z[n], np.arange(i, dtype="f4")) for i, n in enumerate(names)):
            yield f"NumPy finds {z.files}"
    np.savez(path, a=np.arange(2.0), b=np.arange(3.0))
    heft("edit", "--rename", "a=../a", path, code=5)
    with zipfile.ZipFile(path, "w") as z:
        for n in ("../a", "b"):
            z.writestr(n + ".npy", npy_of(np.arange(2.0)))
    heft("edit", "--rename", "b=c", path)
    with np.load(path) as z:
        if z.files != ["../a", "c"]:
            yield f"edited: NumPy finds {z.files}"


def check_refused_without_a_file(root):
    path, out = root / "three.npz", root / "one.npy"
    np.savez(path, a=np.zeros(3), b=np.ones(2), c=np.ones(1))
    heft("convert", path, out, code=5)
    if out.exists():
        yield "an output file exists"
    heft("convert", "--keep", "b", path, out)
    if not same(np.load(out), np.ones(2)):
        yield "the kept array differs"


def check_large(root):
    """Copy, transpose and cast arrays that are larger than all buffers."""
    a = np.asfortranarray(np.random.default_rng(1).random((1500, 1100)).astype(">f8"))
    for save in (np.savez, np.savez_compressed):
        path, out = root / "large.npz", root / "large_out.npz"
        save(path, a=a)
        heft("convert", "--force", path, out)
        if not same(np.load(out)["a"], a):
            yield "the copy differs"
        heft("convert", "--force", "--cast", "*=f32", "--transpose", "a", path, out)
        if not same(np.load(out)["a"], a.T.astype("<f4")):
            yield "the transposed and cast copy differs"


def tests(root):
    for order in "<>":
        for layout in "CF":
            for save in (np.savez, np.savez_compressed):
                yield f"{save.__name__} {order} {layout}", list(
                    check_archive(root, save, order, layout))
            yield f"save {order} {layout}", list(check_files(root, order, layout))
    yield "versions", list(check_versions(root))
    yield "unsupported element types", list(check_unsupported(root))
    yield "partly damaged archives", list(check_mixed(root))
    yield "types of arrays without one", list(check_views(root))
    yield "names that are unsafe to unpack", list(check_names(root))
    yield "one array per .npy file", list(check_refused_without_a_file(root))
    for layout in "CF":
        yield f"names are edited, {layout}", list(check_edits(root, layout))
    yield "refused edits", list(check_edits_of_others(root))
    yield "large arrays", list(check_large(root))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(tests(pathlib.Path(scratch)))


HEFT, COMMANDS = sys.argv[1], Commands(sys.argv[2])
sys.exit(main())
