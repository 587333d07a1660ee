#!/usr/bin/env python3
"""check_declared.py HEFT DECLARE WRITE_HISTORY WRITE_SPARSE: files that programs write.

The programs write tensor by tensor through the library, without a source file. Independent readers
check the files. TAP on stdout."""
import contextlib
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import read_burnpack
import read_gptrs
import read_ztensor1
import read_ztensor2
from cbor import decode

STEPS, SIDE = 10, 64


@contextlib.contextmanager
def own_digests(reader):
    """Let the reader accept any digest, or none, in each component."""
    strict = reader.read_part

    def read_part(data, p, *more):
        return strict(data, p, *more[:-1], p["digest"].split(":")[0] if "digest" in p else None)

    reader.read_part = read_part
    try:
        yield
    finally:
        reader.read_part = strict


def manifest_of(path, footer=8):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data, len(data) - footer)[0]
    return decode(data[len(data) - footer - size:len(data) - footer], 0, 128)[0]


# ---- files of declare ----

def burnpack(folder):
    got = read_burnpack.read((folder / "types.bpk").read_bytes(), "0.21")
    raw = (folder / "types.bpk").read_bytes()
    root = read_burnpack.decode(raw[10:10 + struct.unpack_from("<I", raw, 6)[0]])[0]["tensors"]
    want = {
        "flex": "Flex32", "bool8": {"Bool": "U8"}, "bool32": {"Bool": "U32"},
        "native": {"Bool": "Native"}, "plain": "F32"
    }
    yield "Burnpack: Flex32 and every Bool type are written", all(root[n]["dtype"] == t
                                                         for n, t in want.items())
    yield "Burnpack: a quantized tensor is written with its scheme", root["q"]["dtype"]["QFloat"][
        "value"] == "Q8S" and len(got["tensors"]) == 6
    ids = [root[n].get("param_id") for n in (*want, "q")]
    yield "Burnpack: only given parameter ids are written", ids == [
        2**64 - 1 - i for i in range(5)
    ] + [None]


def gptrs(folder):
    got = read_gptrs.read((folder / "grads.gptrs").read_bytes())
    flags = {t["name"]: t["flag"] for t in got["tensors"]}
    yield "gpt-rs: requires_grad is written", flags == {"yes": True, "no": False, "unsaid": False
                                             } and got["config"]["kind"] == "x"


def own_layout(folder):
    with own_digests(read_ztensor1):
        old = read_ztensor1.read(folder / "own-1.0.zt", "1.0")
        new = read_ztensor1.read(folder / "own-1.2.zt", "1.2")
    a, b = manifest_of(folder / "own-1.0.zt"), manifest_of(folder / "own-1.2.zt", 16)
    layer, typed = a["tensors"]["layer"], b["objects"]["layer"]["components"]
    yield "zTensor 1.0: a custom layout with named components is written", (
        layer["format"] == "quantized_4bit" and layer["shape"] == [64, 64]
        and layer["dtype"] == "uint8"
        and sorted(layer["components"]) == ["data", "scale", "zero_point"]
        and len(old["tensors"]) == 1)
    yield "zTensor 1.2: each component has its element type", (
        {r: c["dtype"]
         for r, c in typed.items()} == {"data": "u8", "scale": "f16", "zero_point": "i8"}
        and len(new["tensors"]) == 1)
    for what, parts in (("1.0", layer["components"]), ("1.2", typed)):
        yield f"zTensor {what}: each component has its encoding and digest", (
            parts["data"].get("encoding") == "zstd"
            and parts["data"]["digest"].startswith("crc32c:") and "encoding" not in parts["scale"]
            and parts["scale"]["digest"].startswith("sha256:")
            and not {"encoding", "digest"} & set(parts["zero_point"]))
    yield "zTensor 1.0: the generator names the program", a["generator"] == "declare 1.4"


def check_declare(heft, declare, folder):
    p = subprocess.run([declare, folder], capture_output=True, text=True)
    yield f"declare: {p.stderr.strip() or 'writes its files'}", p.returncode == 0
    for check in burnpack, gptrs, own_layout:
        yield from check(folder)
    for path in sorted(folder.iterdir()):
        yield f"{path.name}: heft verify", subprocess.run([heft, "verify", "--strict", path],
                                                          capture_output=True).returncode == 0


# ---- sparse tensors ----

def ring_matrix(n):
    rows = [sorted({(i - 1) % n, (i + 1) % n}) for i in range(n)]
    return [2 * i for i in range(n + 1)], [c for r in rows for c in r]


def check_sparse(heft, write_sparse, folder):
    for n in (3, 1000, 70000):
        path = folder / f"ring-{n}.zt"
        code = subprocess.run([write_sparse, path, str(n)], capture_output=True).returncode
        got = read_ztensor1.read(path, "1.0")
        data, tensors = path.read_bytes(), manifest_of(path)["tensors"]

        def part(name, role, kind):
            c = tensors[name]["components"][role]
            return list(
                struct.unpack_from(f"<{c['length'] // struct.calcsize(kind)}{kind}", data,
                                   c["offset"]))

        indptr, columns = ring_matrix(n)
        yield f"sparse_csr of {n} rows is written row by row", (
            code == 0 and len(got["tensors"]) == 2 and part("ring", "indptr", "Q") == indptr
            and part("ring", "indices", "Q") == columns
            and part("ring", "values", "f") == [0.5] * 2 * n)
        coords = [(n - 1) * (c >> axis & 1) for axis in (2, 1, 0) for c in range(8)]
        yield f"sparse_coo of {n} x {n} x {n}", part("corners", "coords", "Q") == coords and part(
            "corners", "values", "d") == list(range(8))
    full = subprocess.run([write_sparse, "/dev/full", "100000"], capture_output=True, text=True)
    is_reported = full.returncode == 1 and "/dev/full" in full.stderr
    yield "a full disk is reported while sparse tensors are written", is_reported


# ---- a training loop ----

def steps():
    """Return (weights, loss) after each step, in the f32 arithmetic of the example."""
    single = lambda v: struct.unpack("<f", struct.pack("<f", v))[0]
    w, out = 0.0, []
    for _ in range(STEPS):
        d = single(w - 1)
        loss = 0.0
        for _ in range(SIDE * SIDE):
            loss = single(loss + single(d * d))
        w = single(w - single(0.125 * d))
        out.append((struct.pack("<f", w) * SIDE * SIDE, loss))
    return out


def read_steps(path, version):
    reader = read_ztensor2 if version == "2" else read_ztensor1
    with own_digests(reader):
        got = reader.read(path, 65536) if version == "2" else reader.read(path, version)
    return got


def check_history(heft, write_history, folder):
    want = steps()
    for version in ("1.1", "1.2", "2"):
        path, pipe = folder / f"loop-{version}.zt", folder / f"pipe-{version}.zt"
        code = subprocess.run([write_history, path, str(STEPS), version],
                              capture_output=True).returncode
        with open(pipe, "wb") as out:
            p = subprocess.Popen(
                [write_history, "/dev/stdout", str(STEPS), version], stdout=subprocess.PIPE)
            out.write(p.stdout.read())
            p.stdout.close()
        piped = p.wait()
        got = read_steps(path, version)
        hashes = {t["name"]: t["sha256"] for t in got["tensors"]}
        import hashlib
        same = all(hashes[f"step.{i}.weight"] == hashlib.sha256(w).hexdigest()
                   for i, (w, _) in enumerate(want))
        is_complete = code == 0 and same and len(hashes) == STEPS
        yield f"zTensor {version}: a tensor is written after every step", is_complete
        is_equal = piped == 0 and pipe.read_bytes() == path.read_bytes()
        yield f"zTensor {version}: a pipe receives the same bytes as a file", is_equal
        final = got["metadata"].get("final_loss")
        is_final = final is not None and math.isclose(float(final), want[-1][1], rel_tol=1e-6)
        yield f"zTensor {version}: metadata known at the end are written", is_final
        yield f"zTensor {version}: heft verify", subprocess.run([heft, "verify", "--strict", path],
                                                                capture_output=True).returncode == 0
    m = manifest_of(folder / "loop-1.2.zt", 16)["objects"]
    yield "zTensor 1.2: each tensor has its own attributes", all(
        m[f"step.{i}.weight"]["attributes"]["step"] == i
        and math.isclose(m[f"step.{i}.weight"]["attributes"]["loss"], want[i][1], rel_tol=1e-6)
        for i in range(STEPS))
    stored = {i: m[f"step.{i}.weight"]["components"]["data"] for i in range(STEPS)}
    yield "zTensor 1.2: each tensor has its own encoding and digest", all(
        (c.get("encoding") == "zstd" and c["digest"].startswith("sha256:")) == (i % 4 == 0) and (
            "digest" in c) == (i % 4 == 0) for i, c in stored.items())


def wait_for(condition):
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False


def check_killed_loop(write_history, folder):
    killed_folder = folder / "there"
    killed_folder.mkdir()
    path = killed_folder / "killed.zt"
    path.write_bytes(b"before")
    p = subprocess.Popen([write_history, path, "100000000", "1.2"])
    began = wait_for(lambda: any(f.stat().st_size > 1 << 20
                                 for f in pathlib.Path(f"/proc/{p.pid}/fd").iterdir()
                                 if f.exists() and f.resolve().parent != pathlib.Path("/dev")))
    p.send_signal(signal.SIGKILL)
    p.wait()
    yield "a killed loop leaves the existing file", began and path.read_bytes(
    ) == b"before"
    code = subprocess.run([write_history, path, "3"], capture_output=True).returncode
    yield "the next loop replaces the file and leaves no other file", code == 0 and os.listdir(
        killed_folder) == ["killed.zt"] and path.read_bytes()[:4] == b"ZTEN"
    p = subprocess.Popen([write_history, "/dev/stdout", "100000000", "1.2"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.read(1 << 20)
    p.stdout.close()
    p.stderr.read()
    yield "a loop ends when its pipe is closed", p.wait() != 0
    p.stderr.close()


def main():
    heft, declare, write_history, write_sparse = sys.argv[1:]
    results = []
    with tempfile.TemporaryDirectory(prefix="heft-declared-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "declared").mkdir()
        for check in (check_declare(heft, declare,
                                    folder / "declared"), check_sparse(heft, write_sparse, folder),
                      check_history(heft, write_history,
                                          folder), check_killed_loop(write_history, folder)):
            try:
                results += check
            except Exception as e:  # raised by an independent reader
                results.append((f"{check.__name__}: {e!r}", False))
    print(f"1..{len(results)}")
    for i, (what, good) in enumerate(results, 1):
        print("ok" if good else "not ok", i, "-", what)
    sys.exit(not all(good for _, good in results))


main()
