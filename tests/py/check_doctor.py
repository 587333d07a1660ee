#!/usr/bin/env python3
"""check_doctor.py HEFT: heft doctor names every kind of damage, and salvages the intact tensors.

The test writes and damages files, and reads salvaged safetensors files without Heft. TAP on
stdout."""
import gzip
import io
import json
import lzma
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DOWNLOAD = "download the file again"


def heft(*words):
    p = subprocess.run([sys.argv[1], *map(str, words)], capture_output=True, check=False)
    return p.returncode, p.stdout.decode(), p.stderr.decode(errors="replace")


def examine(path, *more):
    code, out, err = heft("doctor", "--json", path, *more)
    return code, json.loads(out) if out else {}, err


# ---- files of other programs ----------------------------------------------------------------


def tarred():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo("readme.txt")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    return out.getvalue()


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "abc")
    return out.getvalue()


TEXT = b"weights " * 100
FOREIGN = [  # kind, words of the advice, bytes
    ("html-page", DOWNLOAD, b"<!DOCTYPE html>\n<html><title>Sign in</title></html>"),
    ("html-page", DOWNLOAD, b"\xef\xbb\xbf\n  <HTML><body>Not found</body>"),
    ("xml-document", DOWNLOAD, b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"),
    ("server-message", "log in", b"Invalid username or password."),
    ("server-message", "log in", b"Access to model x/y is restricted."),
    ("server-message", "log in", b"Repository not found"),
    ("server-message", "log in", b"Entry not found"),
    ("json-error", "log in", b'{"error":"Invalid username or password."}'),
    ("json-error", "log in", b'{ "message": "Not Found" }'),
    ("git-lfs-pointer", "git lfs pull",
     b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    ("gzip", "unpack", gzip.compress(TEXT)),
    ("zstd", "unpack", b"\x28\xb5\x2f\xfd" + bytes(40)),
    ("xz", "unpack", lzma.compress(TEXT)),
    ("bzip2", "unpack", b"BZh91AY&SY" + bytes(40)),
    ("lz4", "unpack", b"\x04\x22\x4d\x18" + bytes(40)),
    ("7z", "unpack", b"7z\xbc\xaf\x27\x1c" + bytes(40)),
    ("rar", "unpack", b"Rar!\x1a\x07\x01\x00" + bytes(40)),
    ("tar", "unpack", tarred()),
    ("zip", "unpack", zipped()),
    ("encrypted", "decrypt", b"age-encryption.org/v1\n-> X25519 abc\n"),
    ("encrypted", "decrypt", b"-----BEGIN PGP MESSAGE-----\n\nabc\n"),
    ("encrypted", "decrypt", b"Salted__" + bytes(40)),
    ("hdf5", "safetensors", b"\x89HDF\n\x1a\n" + bytes(40)),
    ("tensorflow-checkpoint", "ONNX",
     bytes(range(48)) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"),
    ("tflite", "ONNX", b"\x1c\0\0\0TFL3" + bytes(40)),
    ("openvino", "safetensors", b'<?xml version="1.0"?>\n<net name="m" version="11">'),
    ("old-ggml", "GGUF", struct.pack("<I", 0x67676D6C) + bytes(40)),
    ("old-ggml", "GGUF", struct.pack("<II", 0x67676A74, 3) + bytes(40)),
    ("arrow", "safetensors", b"ARROW1\0\0" + bytes(40)),
    ("parquet", "safetensors", b"PAR1" + bytes(40)),
    ("elf", "weights", b"\x7fELF\2\1\1" + bytes(40)),
    ("pdf", "weights", b"%PDF-1.7\n"),
    ("image", "weights", b"\x89PNG\r\n\x1a\n" + bytes(40)),
    ("pickle", "safetensors", pickle.dumps({"a": 1}, 2)),
    ("pickle", "safetensors", pickle.dumps([1, 2], 4)),
    ("json", "index", b'{"architectures": ["GPT2"]}'),
    ("empty", DOWNLOAD, b""),
    ("byte-swapped", "swapping", b"FUGG" + struct.pack(">I", 3) + bytes(40)),
    ("unfinished-download", DOWNLOAD, bytes(4096)),
    ("unknown-format", "comes from", b"nothing that anybody knows"),
]


def check_foreign(folder):
    for i, (kind, advice, data) in enumerate(FOREIGN):
        path = folder / f"file{i}"
        path.write_bytes(data)
        code, document, err = examine(path)
        found = [(f["kind"], f["advice"]) for f in document.get("findings", [])]
        good = (code == 1 and not err and not document["ok"] and len(found) == 1
                and found[0][0] == kind and advice in found[0][1])
        yield f"foreign: {kind}, {data[:20]!r}", [] if good else [(code, err, document)]


# ---- models ---------------------------------------------------------------------------------


def values():
    """Return {name: (shape, bytes of f32)} without zeros, CR LF or text in the bytes."""
    pattern = bytes(range(0x11, 0xE1))
    made = {}
    for i, shape in enumerate([(40, 50), (7, ), (3, 5, 11), (64, 64), (1, ), (300, )]):
        count = 1
        for n in shape:
            count *= n
        data = (pattern[i * 5:] * (count // 40 + 2))[:count * 4]
        made[f"layer.{i}.weight"] = (shape, data)
    return made


def safetensors(tensors):
    header, data = {}, b""
    for name, (shape, raw) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    header.pop("__metadata__", None)
    data = raw[8 + n:]
    return {name: (tuple(t["shape"]), data[slice(*t["data_offsets"])])
            for name, t in header.items()}


# Formats by suffix. A truncated file has a readable index if the index comes first.
FORMATS = {"safetensors": "safetensors", "gguf": "gguf", "mag": "mag", "burnpack": "bpk",
           "gptrs-checkpoint": "chk", "ztensor": "zt", "npz": "npz", "npy": "npy"}
INDEX_LAST = {"ztensor"}
UNNAMED = {"npz"}  # the names of tensors that are cut off are not known


def models(folder):
    """Write a model in each format; yield (format, path, tensors)."""
    tensors = values()
    source = folder / "source.safetensors"
    source.write_bytes(safetensors(tensors))
    single = folder / "single.safetensors"
    single.write_bytes(safetensors({"layer.0.weight": tensors["layer.0.weight"]}))
    yield "safetensors", source, tensors
    for name, suffix in FORMATS.items():
        path = folder / f"model.{suffix}"
        given = single if name == "npy" else source
        if name == "safetensors":
            continue
        code, _, err = heft("convert", "--to", name, given, path, "--allow-loss", "--quiet")
        assert not code, (name, err)
        yield name, path, tensors


def stored_ends(path):
    """Return {name: offset after the last byte of the tensor}, as listed by Heft."""
    code, out, err = heft("ls", "--json", path)
    assert not code, err
    return {t["name"]: max(p["offset"] + p["stored"] for p in t["parts"])
            for t in json.loads(out)["tensors"]}


def cuts(ends, size):
    """Return sizes for a truncated file: near the beginning, and around the end of each tensor."""
    chosen = {size - 1, min(ends.values()) - 1}
    for end in ends.values():
        chosen |= {end, end - 1, end + 1}
    return sorted(n for n in chosen if 0 < n < size)


def bytes_of(tensors, salvaged):
    """Compare salvaged tensors with the source; an array of npy has another name."""
    by_data = {raw: name for name, (_, raw) in tensors.items()}
    bad = [name for name, (shape, raw) in salvaged.items()
           if raw not in by_data or tensors[by_data[raw]][0] != shape]
    return [f"wrong bytes: {bad}"] if bad else []


def check_cut(name, path, tensors, ends, size, folder):
    """Cut the file to `size` bytes and salvage the rest; return complaints."""
    cut, out = folder / f"cut{path.suffix}", folder / "rest.safetensors"
    out.unlink(missing_ok=True)
    cut.write_bytes(path.read_bytes()[:size])
    whole = {name for name, end in ends.items() if end <= size}
    code, document, err = examine(cut, "-o", out)
    bad = []
    if code == 0 and len(whole) == len(ends):
        return []  # only padding is missing
    if code != 1 or document["ok"]:
        return [f"cut to {size}: exit {code}, {err} {document}"]
    lost = {t["name"] for t in document["lost"]}
    if not document["tensors"]:
        return [f"cut to {size}: the index is there, but not read: {document}"] if whole else []
    if name not in UNNAMED and lost != set(ends) - whole:
        bad.append(f"cut to {size}: lost {sorted(lost)}, whole are {sorted(whole)}")
    if bool(whole) != out.exists():
        bad.append(f"cut to {size}: {out.name} exists: {out.exists()}")
    elif whole:
        salvaged = read_safetensors(out)
        bad += bytes_of(tensors, salvaged)
        if len(salvaged) != len(whole):
            bad.append(f"cut to {size}: {len(salvaged)} salvaged, {len(whole)} are whole")
    return bad


def check_truncation(folder):
    for name, path, tensors in models(folder):
        code, document, err = examine(path)
        good = code == 0 and document["ok"] and not err and not document["lost"]
        yield f"{name}: a whole file is healthy", [] if good else [(code, document, err)]
        ends, size, bad = stored_ends(path), path.stat().st_size, []
        for n in cuts(ends, size):
            if name not in INDEX_LAST:
                bad += check_cut(name, path, tensors, ends, n, folder)
            else:
                (folder / "cut").write_bytes(path.read_bytes()[:n])
                code, document, err = examine(folder / "cut")
                if code != 1 or document["ok"] or err:
                    bad.append((n, code, document, err))
        yield f"{name}: a truncated file is diagnosed and salvaged", bad


# ---- truncated archives ---------------------------------------------------------------------


class Stream:
    """An output without positions: zipfile writes sizes after each member, as PyTorch does."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data
        return len(data)

    def flush(self):
        pass


def archive(members, method=zipfile.ZIP_STORED, is_stream=True):
    out = Stream() if is_stream else io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(name, data)
    return out.data if is_stream else out.getvalue()


def text_of(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def pickled(tensors, views=b""):
    items = b""
    for i, (name, (shape, _)) in enumerate(tensors.items()):
        count = 1
        for n in shape:
            count *= n
        strides = []
        for n in reversed(shape):
            strides.insert(0, strides[0] * last if strides else 1)
            last = n
        tuples = [b"(" + b"".join(b"J" + struct.pack("<i", n) for n in t) + b"t"
                  for t in (shape, strides)]
        items += text_of(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text_of(
            "storage") + b"ctorch\nFloatStorage\n" + text_of(str(i)) + text_of(
                "cpu") + b"J" + struct.pack("<i", count) + views + b"tQK\0" + b"".join(
                    tuples) + b"\x89NtR"
    return b"\x80\x02}(" + items + b"u."


def torch_files(tensors):
    """Yield (name, bytes) of the layouts of PyTorch."""
    data = [(f"m/data/{i}", raw) for i, (_, raw) in enumerate(tensors.values())]
    members = [("m/data.pkl", pickled(tensors)), *data, ("m/version", b"3\n")]
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for is_stream in (True, False):
            yield f"zip {method} {is_stream}", archive(members, method, is_stream)
    yield "script", archive(members[1:] + members[:1])
    machine = {"protocol_version": 1001, "little_endian": True}
    stream = b"".join(pickle.dumps(v, 2) for v in (0x1950A86A20F9469CFC6C, 1001, machine))
    stream += pickled(tensors, b"N") + pickle.dumps([str(i) for i in range(len(tensors))], 2)
    for shape, raw in tensors.values():
        stream += struct.pack("<q", len(raw) // 4) + raw
    yield "legacy", stream


def check_torch(folder):
    """Cut PyTorch files anywhere: the tensors whose bytes are there are saved."""
    tensors = {n: v for n, v in values().items() if len(v[1]) < 1500}
    for name, data in torch_files(tensors):
        path = folder / "whole.pt"
        path.write_bytes(data)
        ends, bad = stored_ends(path), []
        named_at = data.index(b"u.") + 2 if name == "script" else 0  # the end of data.pkl
        for n in sorted({*range(9, len(data), 61), *cuts(ends, len(data))}):
            out, cut = folder / "rest.safetensors", folder / "cut.pt"
            out.unlink(missing_ok=True)
            cut.write_bytes(data[:n])
            code, document, err = examine(cut, "-o", out)
            salvaged = read_safetensors(out) if out.exists() else {}
            whole = {t for t, end in ends.items() if end <= n}
            # The size of the last deflated member is in a descriptor after its data.
            least = {t for t, end in ends.items() if end + 16 <= n} if "8 True" in name else whole
            bad += bytes_of(tensors, salvaged)
            if code != 1 or (n >= named_at and not least <= set(salvaged) <= whole):
                bad.append((n, code, sorted(salvaged), sorted(whole), err, document))
        yield f"PyTorch, {name}: cut anywhere", bad


# ---- damage inside --------------------------------------------------------------------------


def kinds_of(document):
    return [f["kind"] for f in document.get("findings", [])]


def gguf(folder, data):
    """Return a GGUF file with one tensor: 64 x 64 numbers with these bytes."""
    source, path = folder / "g.safetensors", folder / "g.gguf"
    source.write_bytes(safetensors({"w": ((64, 64), data)}))
    code, _, err = heft("convert", "--to", "gguf", source, path, "--force", "--quiet")
    assert not code, err
    raw = path.read_bytes()
    assert raw[:-len(data)].isascii() and b"\n" not in raw[:-len(data)]
    return raw


def check_mangled_gguf(folder):
    """A header without line feeds and text survives: the file opens, and has extra bytes."""
    noisy = bytes((i * i + i // 7) % 251 for i in range(64 * 64 * 4))
    lines = gguf(folder, noisy).replace(b"\n", b"\r\n")
    text = gguf(folder, noisy).decode(errors="replace").encode()
    for kind, data, first in [("crlf", lines, b"\r\n"), ("replaced-bytes", text, b"\xef\xbf\xbd")]:
        path = folder / f"{kind}.gguf"
        path.write_bytes(data)
        code, document, _ = examine(path)
        found = document["findings"]
        good = (code == 1 and kinds_of(document) == ["gguf/trailing", kind]
                and found[1]["offset"] == data.index(first)
                and [t["name"] for t in document["lost"]] == ["w"])
        yield f"GGUF that opens: {kind}", [] if good else [code, document]


def zero_tail(header, received, size):
    """Return a safetensors file of `size` bytes with zeros from byte `received` on.

    The data begin at byte `header`: a tensor of 4096 bytes, an empty tensor, and the rest."""
    rest = size - header - 4096
    text = json.dumps({
        "a": {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]},
        "b": {"dtype": "U8", "shape": [0], "data_offsets": [4096, 4096]},
        "c": {"dtype": "U8", "shape": [rest], "data_offsets": [4096, 4096 + rest]}}).encode()
    text += b" " * (header - 8 - len(text))
    data = struct.pack("<Q", header - 8) + text + b"\x55" * (size - header)
    return data[:received] + bytes(size - received)


def check_zeros(folder):
    """Zeros at the end are a stopped download if they begin at a block inside a tensor."""
    path = folder / "z.safetensors"
    for name, lost, data in [
            ("inside a tensor", ["c"], zero_tail(4000, 8192, 16384)),
            ("just before a block", ["c"], zero_tail(4000, 8192 - 3, 16384)),
            ("with a tensor", [], zero_tail(4096, 8192, 16384)),
            ("far before a block", [], zero_tail(4000, 8192 - 16, 16384)),
            ("less than a block", [], zero_tail(4000, 8192, 12000)),
            ("just before the end", [], zero_tail(4000, 12288 - 8, 12288 - 4))]:
        path.write_bytes(data)
        code, document, _ = examine(path)
        kinds = ["unfinished-download"] if lost else []
        good = (code == bool(lost) and kinds_of(document) == kinds
                and [t["name"] for t in document["lost"]] == lost)
        yield f"zeros {name}", [] if good else [code, document]


def check_many(folder):
    """A diagnosis keeps at most 1000 findings."""
    path = folder / "many.safetensors"
    header = {f"t{i}": {"dtype": "BOOL", "shape": [1], "data_offsets": [i, i + 1]}
              for i in range(1003)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\2" * 1003)
    code, document, err = examine(path)
    good = not err and len(document["findings"]) == 1000 and document["tensors"] == 1003
    yield "many findings", [] if good else [code, err, len(document["findings"])]


def check_transfers(folder):
    """Transfers as text, through a decoder, and downloads that stopped."""
    tensors = values()
    noisy = {n: (s, bytes((b * 7 + i) % 251 for i, b in enumerate(r))) for n, (s, r) in
             tensors.items()}
    raw = safetensors(noisy)
    path = folder / "m.safetensors"
    data = raw[:8] + raw[8:].replace(b"\r\n", b"\r\r").replace(b"\n", b"\r\n")
    path.write_bytes(data)
    code, document, _ = examine(path)
    good = code == 1 and kinds_of(document) == ["crlf"] and \
        document["findings"][0]["offset"] == data.index(b"\r\n")
    yield "CR LF", [] if good else [document]
    data = raw.decode(errors="replace").encode()
    path.write_bytes(data)
    code, document, _ = examine(path)
    good = code == 1 and kinds_of(document) == ["replaced-bytes"] and \
        document["findings"][0]["offset"] == data.index(b"\xef\xbf\xbd")
    yield "U+FFFD", [] if good else [document]
    yield from check_mangled_gguf(folder)
    raw = safetensors(tensors)
    block = 4096 * 3
    path.write_bytes(raw[:block] + bytes(len(raw) - block))
    code, document, _ = examine(path)
    good = code == 1 and "unfinished-download" in kinds_of(document) and \
        document["lost"] and len(document["lost"]) < len(tensors)
    yield "zeros at the end", [] if good else [document]
    path.write_bytes(raw + b"extra")
    code, document, _ = examine(path)
    good = code == 1 and kinds_of(document) == ["trailing-bytes"] and \
        document["intact"] == len(tensors)
    yield "bytes after the end", [] if good else [document]


def check_checksums(folder):
    """A tensor under a wrong checksum is lost, and the rest is salvaged."""
    tensors = values()
    source, path = folder / "s.safetensors", folder / "d.zt"
    source.write_bytes(safetensors(tensors))
    heft("convert", "--digest", "crc32c", source, path)
    data = bytearray(path.read_bytes())
    at = data.index(tensors["layer.3.weight"][1])
    data[at + 100] ^= 1
    path.write_bytes(data)
    out = folder / "d.safetensors"
    code, document, err = examine(path, "-o", out)
    rest = {n: t for n, t in tensors.items() if n != "layer.3.weight"}
    good = code == 1 and [t["name"] for t in document["lost"]] == ["layer.3.weight"] and not err
    yield "wrong checksum", [] if good else [(document, err)]
    good = out.exists() and read_safetensors(out) == rest
    yield "tensors with right checksums are salvaged", [] if good else [err]
    code, _, err = heft("doctor", path, "-o", out)
    yield "an existing file is not replaced", [] if code == 2 and "--force" in err else [code, err]


def npy(descr, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def check_left_out(folder):
    """An array that is left out and damaged is lost: the file is not said to be whole."""
    path = folder / "a.npz"
    for title, second, where in (
            ("damaged header", npy("<f4", b"abcd"), b"\x93NUMPY"),
            ("damaged objects", npy("|O", b"objects."), b"objects.")):
        raw = bytearray(archive([("a.npy", npy("<f4", b"1234")), ("b.npy", second)],
                                is_stream=False))
        raw[raw.rindex(where) + 1] ^= 1
        path.write_bytes(raw)
        code, text, err = heft("doctor", path)
        lines = text.splitlines()
        good = (code == 1 and not err and len(lines) == len(set(lines)) and "whole" not in text
                and lines[-1].endswith(": damaged (npz, 1 of 2 tensors intact)")
                and lines[-2].startswith("  advice: download or copy the file again"))
        yield f"npz, {title} of an array", [] if good else [code, text, err]


def check_blocks(folder):
    """Blocks are counted as blocks, also where a buffer ends: no scale is NaN here."""
    path, blocks = folder / "q.gguf", 20000
    name, of_type = b"w", struct.pack("<I", 2)  # q4_0: a scale and 16 bytes
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<IQ", 1, 32 * blocks) + of_type + struct.pack("<Q", 0)
    path.write_bytes(head + bytes(-len(head) % 32) + (b"\x00\x3c" + b"\xff" * 16) * blocks)
    code, document, err = examine(path)
    good = code == 0 and not kinds_of(document)
    yield "blocks without NaN", [] if good else [code, document, err]


def check_suffix(folder):
    path = folder / "wrong.gguf"
    path.write_bytes(safetensors(values()))
    code, document, _ = examine(path)
    good = code == 1 and kinds_of(document) == ["wrong-suffix"] and not document["lost"]
    yield "wrong suffix", [] if good else [document]


def check_text(folder):
    path, out = folder / "t.safetensors", folder / "t2.safetensors"
    raw = safetensors(values())
    path.write_bytes(raw[:-2000])
    code, text, err = heft("doctor", path, "-o", out)
    lines = text.splitlines()
    good = (code == 1 and not err and ": fault: truncated: " in lines[0]
            and lines[1].startswith("  advice: download or copy the file again")
            and any(line.startswith("  lost: layer.5.weight (") for line in lines)
            and lines[-2].endswith(": damaged (safetensors, 3 of 6 tensors intact)")
            and lines[-1].endswith(": 3 tensors salvaged, 3 lost"))
    yield "text", [] if good else [text, err]
    code, text, err = heft("doctor", folder / "missing.pt")
    yield "missing file", [] if code == 4 and not text and "missing.pt" in err else [code, text]
    code, text, err = heft("doctor", folder)
    good = code == 4 and not text and err == f"heft: {folder}: is a folder: " \
        "'heft doctor' examines one file of it\n"
    yield "folder", [] if good else [code, text, err]
    path.write_bytes(raw)
    code, text, err = heft("doctor", path)
    good = code == 0 and text == f"{path}: healthy (safetensors, 6 of 6 tensors intact)\n"
    yield "healthy", [] if good else [text]


def main():
    with tempfile.TemporaryDirectory() as name:
        checks = [check_foreign, check_truncation, check_torch, check_transfers, check_zeros,
                  check_many, check_checksums, check_left_out, check_blocks, check_suffix,
                  check_text]
        results = []
        for check in checks:
            folder = pathlib.Path(name) / check.__name__
            os.mkdir(folder)
            results += check(folder)
        return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
