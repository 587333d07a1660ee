#!/usr/bin/env python3
"""check_part_digests.py COMMANDS GENERATOR...: damage parts that have a digest.

Each command that reads a whole damaged part must end with status 3 and name tensor and rule, and
must read the part with --no-verify. The files are samples of the generators and archives made here.
TAP on stdout."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

from commands import Commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

KNOWN = ("crc32:", "crc32c:", "sha256:", "xxh3:")
CHUNK = 1 << 20  # buffer of cat
# Number of damaged parts per file; the first COPIED are also copied by other commands.
MAX_PARTS, COPIED = 6, 2
LEFT_OUT = 5  # status of hash if content cannot be read


def run(heft, *args):
    return heft.run(*map(str, args), text=False)


def listed(heft, path):
    shown = run(heft, "ls", "--raw-tensors", "--json", path)
    return json.loads(shown.stdout) if shown.returncode == 0 else None


def members(path):
    """Yield (name, begin, end, CRC-32) of each member's data."""
    with zipfile.ZipFile(path) as z, open(path, "rb") as f:
        for info in z.infolist():
            f.seek(info.header_offset + 26)
            name_len, extra_len = struct.unpack("<HH", f.read(4))
            begin = info.header_offset + 30 + name_len + extra_len
            yield info.filename, begin, begin + info.compress_size, info.CRC


def has_digest(model, part, archive):
    end = part["offset"] + part["stored"]
    if not part["length"] and model["version"] == "2":
        return False  # a digest of no bytes, whatever is stored
    if archive:
        return any(begin <= part["offset"] and end <= stop and crc
                   for _, begin, stop, crc in archive)
    return (part["digest"] or "").startswith(KNOWN)


def is_numeric(tensor):
    dtype = tensor["dtype"]
    return (tensor["layout"] in ("dense", "sparse_csr", "sparse_coo")
            and dtype not in (None, "f8_e8m0") and not dtype.startswith(("q", "iq", "tq", "mx")))


def commands(tensor, part, path, other):
    """Return the commands that read the whole part."""
    name = tensor["name"]
    small = part["length"] <= 1000  # fewer elements than show leaves out
    raw = "--raw-tensors"
    is_counted = part["role"] in ("data", "values") and is_numeric(tensor)
    return [
        ["cat", raw, "--part", part["role"], path, "--", name],
        ["hash", path],
        ["diff", raw, path, other],
        *([["show", raw, path, "--", name]] if small else []),
        *([["stats", raw, path]] if is_counted else [])
    ]


def copies(path, folder):
    """The commands that copy all data of the file: within the format, and to other formats."""
    for name in ("copy.zt", "copy.npz", "copy.safetensors"):
        yield ["convert", "--no-sync", path, folder / name]
    for to in ("ztensor", "safetensors"):
        yield ["split", "--no-sync", "--count", "1", "--to", to, path,
               folder / f"split-{to}"]


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)


def check_copies(heft, path, bad, part, folder):
    """Wrong bytes are not copied without --no-verify."""
    for of_good, command in zip(copies(path, folder), copies(bad, folder)):
        remove(command[-1])
        if run(heft, *of_good).returncode:
            continue  # the target cannot represent the model
        remove(command[-1])
        got = run(heft, *command)
        said = got.stderr.decode()
        words = " ".join(map(str, command))
        if got.returncode != 3 and "sparse entries are invalid" not in said:  # found by the plan
            yield f"{words}: status {got.returncode}, {said}"
        elif got.returncode == 3 and part["encoding"] == "raw" and "does not match" not in said:
            yield f"{words}: says {said}"
        if command[-1].is_file() or command[-1].is_dir() and list(command[-1].iterdir()):
            yield f"{words}: leaves a file"
        remove(command[-1])
        over = run(heft, *with_option(command, "--no-verify"))
        if part["encoding"] == "raw" and over.returncode and got.returncode == 3:
            yield f"{words} --no-verify: status {over.returncode}, {over.stderr.decode()}"


def with_option(command, option):
    return [command[0], option, *command[1:]]


def damaged(data, at):
    return data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1:]


def check_part(heft, path, tensor, part, folder):
    """Damage a byte of the part and return the commands that react wrongly."""
    data, bad = path.read_bytes(), folder / ("bad" + path.suffix)
    bad.write_bytes(damaged(data, part["offset"] + part["stored"] // 2))
    seen = listed(heft, bad)
    if not seen or tensor["name"] not in [t["name"] for t in seen["tensors"]]:
        return [], None  # the parser rejected the file, for example a compressed header
    faults = []
    for command in commands(tensor, part, bad, path):
        got = run(heft, *command)
        messages = got.stderr.decode()
        if got.returncode != 3:
            faults.append(f"{' '.join(map(str, command))}: status {got.returncode}, {messages}")
        elif part["encoding"] == "raw" and not ("tensor " in messages
                                                and "digest does not match" in messages):
            faults.append(f"{' '.join(map(str, command))}: says {messages}")
        if command[0] != "diff" and got.stdout and (part["encoding"] == "raw"
                                                    or command[0] != "cat"):
            faults.append(f"{' '.join(map(str, command))}: writes {len(got.stdout)} bytes")
        unverified = run(heft, *with_option(command, "--no-verify"))
        if part["encoding"] == "raw" and unverified.returncode not in (
            (0, 1) if command[0] == "diff" else (0,)):
            faults.append(
                f"{command[0]} --no-verify: status {unverified.returncode}, "
                f"{unverified.stderr.decode()}"
            )
    return faults, bad


def check_sample(heft, path, folder):
    model = listed(heft, path)
    if not model or run(heft, "verify", path).returncode:
        return None  # the sample itself is invalid
    clean = run(heft, "hash", path)
    if clean.returncode == LEFT_OUT:
        return None  # the model has no digest
    if clean.returncode != 0:
        return 0, [f"hash of the sample itself: {clean.stderr.decode()}"]
    archive = list(
        members(path)) if model["format"] in ("npz", "torch") and zipfile.is_zipfile(path) else None
    count, faults = 0, []
    for tensor in model["tensors"]:
        for part in tensor["parts"]:
            inside = "shard" not in part and part["offset"] + part["stored"] <= model["size"]
            if count < MAX_PARTS and inside and part["stored"] and has_digest(model, part, archive):
                count += 1
                found, bad = check_part(heft, path, tensor, part, folder)
                faults += found
                if bad and count <= COPIED:
                    faults += check_copies(heft, path, bad, part, folder)
    return (count, faults) if count else None


# ---- files made here -----------------------------------------------------------------------------


def npy(values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(values)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(
        f"<{len(values)}f", *values)


def write_npz(path, method, count):
    with zipfile.ZipFile(path, "w", method) as z:
        z.writestr("first.npy", npy([float(i % 1000) for i in range(count)]))
        z.writestr("second.npy", npy([1.0, 2.0, 3.0]))


def break_crc(path):
    """Change the CRC-32 of each member in the header and in the directory, but not the content."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as z:
        for info in z.infolist():
            data[info.header_offset + 14] ^= 1
        at = z.start_dir
    while data[at:at + 4] == b"PK\1\2":
        data[at + 16] ^= 1
        at += 46 + sum(struct.unpack_from("<HHH", data, at + 28))
    path.write_bytes(data)


def check_archive(check, heft, folder, method, name):
    path, good = folder / f"{name}.npz", folder / f"{name}-good.npz"
    for p in (path, good):
        write_npz(p, method, 600)
    break_crc(path)
    for command in (["cat", path,
                     "second"], ["hash", path], ["stats", path], ["show", path,
                                                                  "first"], ["diff", good, path]):
        got = run(heft, *command)
        messages = got.stderr.decode()
        check(got.returncode == 3 and "npz/crc32" in messages and "tensor '" in messages,
              f"{command[0]} checks the CRC of a member that is {name}", messages)
        unverified = run(heft, *with_option(command, "--no-verify"))
        check(unverified.returncode == 0 and not unverified.stderr,
              f"{command[0]} --no-verify does not ({name})", unverified.stderr.decode())


def check_large(check, heft, folder):
    path = folder / "large.npz"
    write_npz(path, zipfile.ZIP_STORED, 700_000)
    want = path.read_bytes()
    _, _, end, _ = next(members(path))
    bad = bytearray(want)
    bad[end - 2_000_000] ^= 0x10
    path.write_bytes(bad)
    got = run(heft, "cat", path, "first")
    messages = got.stderr.decode()
    check(
        got.returncode == 3 and "were already written" in messages and len(got.stdout) == 2_800_000,
        "of a tensor larger than the buffer all is written before its digest is known, which is "
        "said",
        messages)
    check(got.stdout == bytes(bad[end - 2_800_000:end]), "... as it is in the file")
    path.write_bytes(bytes(damaged(want, end - 1_000_000)))
    check(
        run(heft, "show", path, "first").returncode == 0,
        "show of a large tensor reads its edges only")
    check(run(heft, "cat", path, "second").returncode == 0, "a tensor beside it is read")
    check(
        run(heft, "stats", path, "second").returncode == 0,
        "statistics of the other tensor are made")
    check(run(heft, "stats", path).returncode == 3, "statistics of both are not")


def check_ranges(check, heft, folder):
    """Check commands that read all data of an EMBD file: one checksum covers all tensors."""
    source, path = folder / "in.npz", folder / "m.weights"
    with zipfile.ZipFile(source, "w") as z:
        z.writestr("a.npy", npy([1.0] * 200))
        z.writestr("b.npy", npy([2.0] * 300))
    created = run(heft, "convert", "--allow-loss", source, path)
    check(created.returncode == 0, "an EMBD file is written", created.stderr.decode())
    part = listed(heft, path)["tensors"][0]["parts"][0]
    good = path.read_bytes()
    (folder / "good.weights").write_bytes(good)
    path.write_bytes(damaged(good, part["offset"] + 10))
    for command in (["hash", path], ["stats",
                                     path], ["diff", path,
                                             source], ["diff", folder / "good.weights", path]):
        got = run(heft, *command)
        check(got.returncode == 3 and "embd/data-crc" in got.stderr.decode(),
              f"{command[0]} reads all data of an EMBD file, and checks them", got.stderr.decode())
        unverified = run(heft, *with_option(command, "--no-verify"))
        check(unverified.returncode in (0, 1), f"{command[0]} --no-verify does not",
              unverified.stderr.decode())
    for command in (["cat", path, "a"], ["show", path, "a"], ["stats", path, "a"]):
        check(run(heft, *command).returncode == 0, f"{command[0]} of one tensor cannot")


def check_samples(results, heft, generator, folder):
    samples, work = folder / generator.stem, folder / "work"
    samples.mkdir()
    work.mkdir(exist_ok=True)
    subprocess.run([sys.executable, generator, samples], check=True, stdout=subprocess.DEVNULL)
    for path in sorted(samples.glob("*/good/*")):
        if path.suffix == ".json" or not path.is_file():
            continue
        found = check_sample(heft, path, work)
        if found:
            results.append((f"{path.parent.parent.name}/{path.name}: {found[0]} parts", found[1]))


def main():
    program, *generators = sys.argv[1:]
    heft, results = Commands(program), []

    def check(holds, title, *complaints):
        results.append((title, [] if holds else [*complaints] or ["the condition does not hold"]))

    with tempfile.TemporaryDirectory(prefix="heft-digests-") as folder:
        folder = pathlib.Path(folder)
        for generator in generators:
            before = len(results)
            check_samples(results, heft, pathlib.Path(generator), folder)
            check(len(results) > before, f"{pathlib.Path(generator).stem} has samples with digests")
        check_archive(check, heft, folder, zipfile.ZIP_STORED, "stored")
        check_archive(check, heft, folder, zipfile.ZIP_DEFLATED, "deflated")
        check_large(check, heft, folder)
        check_ranges(check, heft, folder)
    check(not heft.end(), "no process of the commands ended with a finding")
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
