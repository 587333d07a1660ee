#!/usr/bin/env python3
"""check_archives.py HEFT: files of weights in archives of other programs.

Archives are made with Python's tarfile and zipfile, their weights with PyTorch. TAP on stdout."""
import gzip
import io
import pathlib
import sys
import tarfile
import zipfile

try:
    import numpy
    import torch
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)

from checks import heft, require, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

WEIGHTS = {"w": torch.arange(12.0).reshape(3, 4), "b": torch.ones(5, dtype=torch.bfloat16)}
PROGRAM = b"MZqFpD='\n" + bytes(4000)


def saved(tensors=None):
    out = io.BytesIO()
    torch.save(WEIGHTS if tensors is None else tensors, out)
    return out.getvalue()


def tar(members, form=tarfile.USTAR_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        folder = tarfile.TarInfo("./")
        folder.type = tarfile.DIRTYPE
        t.addfile(folder)
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def packed(members, before=b"", method=zipfile.ZIP_STORED):
    out = io.BytesIO(before)
    with zipfile.ZipFile(out, "a" if before else "w", method) as z:
        for name, data in members.items():
            z.writestr(name, data)
    return out.getvalue()


def nemo(**more):
    return {"./model_config.yaml": b"a: 1\n", "./model_weights.ckpt": saved(), **more}


def require_weights(path, *options):
    for name, t in WEIGHTS.items():
        p = heft("cat", *options, path, name)
        want = t.contiguous().view(torch.int16 if t.dtype == torch.bfloat16 else t.dtype).numpy()
        require(p.stdout == want.tobytes(), f"{path.name}: other bytes in {name}")


def write(scratch, name, data):
    (scratch / name).write_bytes(data)
    return scratch / name


# ---- checks ----

def tar_archives(scratch):
    for form in tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
        path = write(scratch, "m.nemo", tar(nemo(), form))
        for way in "auto", "map", "read", "direct":
            require_weights(path, "--access", way)
    deep = {"./" + "d" * 120 + "/model_weights.ckpt": saved()}
    require_weights(write(scratch, "deep.nemo", tar(deep, tarfile.PAX_FORMAT)))
    require_weights(write(scratch, "z.nemo", gzip.compress(tar(nemo()))))
    p = heft("scan", scratch / "m.nemo", code=None)
    require(b"pickle" in p.stdout, "scan does not look into the archive")


def folders(scratch):
    for name in "m.nemo", "m.pt2", "m.llamafile":
        folder = scratch / name.replace(".", "_")
        folder.mkdir()
        write(folder, name, packed({"w.pt": saved()}, PROGRAM))
        require_weights(folder)


def programs_with_an_archive(scratch):
    w = write(scratch, "w.pt", saved())
    heft("convert", "--to", "gguf", w, scratch / "w.gguf")
    model = (scratch / "w.gguf").read_bytes()
    for head in PROGRAM, b"\x7fELF" + bytes(3000), b"jartsr='" + bytes(99):
        data = packed({".args": b"-m\nw.gguf\n", "w.gguf": model, "usr/doc.txt": b"x" * 99}, head)
        path = write(scratch, "w.llamafile", data)
        require_weights(path)
        p = heft("verify", path)
        require(b"heft/archive" in p.stdout and b"w.gguf" in p.stdout, p.stdout)
    at = data.index(model) + len(model) - 3
    damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
    path = write(scratch, "d.llamafile", damaged)
    require(b"heft/archive-crc" in heft("verify", path, code=1).stdout, "the damage is not found")
    heft("convert", path, scratch / "d.safetensors", code=3)
    require(not (scratch / "d.safetensors").exists(), "a damaged file was converted")
    for args in ["edit", "--set", "a=b", path], ["append", path, w]:
        p = heft(*args, code=5)
        require(b"in an archive" in p.stderr, p.stderr)
        require(path.read_bytes() == damaged, "the archive was changed")


def exported_programs(scratch):
    members = {
        "version": b"2", "serialized_constants.pt": saved({"c": torch.ones(2)}),
        "serialized_example_inputs.pt": saved({"x": torch.ones(2)}),
        "serialized_state_dict.pt": saved()
    }
    path = write(scratch, "m.pt2", packed(members))
    require_weights(path)
    p = heft("convert", path, scratch / "m.safetensors")
    require(b"serialized_constants.pt" in p.stderr, p.stderr)
    heft("convert", "--strict", path, scratch / "s.safetensors", code=5)


def later_programs(scratch):
    """A .pt2 of PyTorch 2.7 has its weights in a member, which PyTorch 1.13 writes here alike; its
    inputs are no weights."""
    members = {
        "archive_format": b"pt2", "archive_version": b"0", "byteorder": b"little",
        "data/weights/model.pt": saved(), "data/constants/model.pt": saved({"c": torch.ones(2)}),
        "models/model.json": b"{}", "data/sample_inputs/model.pt": saved({"x": torch.ones(3)}),
        "version": b"3\n"
    }
    inputs = "data/sample_inputs/model.pt"
    for first in None, ".format_version", "byteorder":
        for left_out in None, inputs:
            names = ([first] if first else []) + [n for n in members if n not in (first, left_out)]
            data = packed({f"model/{n}": members.get(n, b"1") for n in names})
            path = write(scratch, "m.pt2", data)
            require_weights(path)
            require(heft("ls", path).stdout.count(b"\n") == 4, "not the weights and the constant")
            p = heft("verify", path)
            require(b"torch/package" in p.stdout, p.stdout)
    path = write(scratch, "own.zip", packed({"archive_format": b"", "model_weights.ckpt": saved()}))
    require_weights(path)


def refusals(scratch):
    ranks = {f"./mp_rank_0{i}/model_weights.ckpt": saved() for i in range(2)}
    for name, data, code, words in [
        ("ranks.nemo", tar(ranks), 5, b"mp_rank_01"),
        ("two.zip", packed({"a.safetensors": b"", "b.safetensors": b""}), 5, b"2 files of weights"),
        ("small.zip", packed({"w.pt": saved()}, method=zipfile.ZIP_DEFLATED), 5, b"compressed"),
        ("none.tar", tar({"a.txt": b"x"}), 3, b"is a tar archive"),
        ("none.zip", packed({"a.txt": b"x"}), 3, b"is a zip archive"),
        ("none.exe", PROGRAM, 3, b"unknown format"),
        ("inner.tar", tar({"a.pt": tar(nemo())}), 3, b"is a tar archive"),
        ("empty.tar", tar({"a.safetensors": b""}), 3, b"empty")]:
        p = heft("ls", write(scratch, name, data), code=code)
        require(words in p.stderr, f"{name}: {p.stderr}")


def truncated_archives(scratch):
    """Every cut is an error, or leaves the weights whole."""
    zipped = packed({"version": b"2", "w.pt": saved()})
    for name, data in [("m.nemo", tar(nemo())), ("m.pt2", zipped)]:
        for i in range(40):
            path = write(scratch, name, data[:len(data) * i // 40])
            p = heft("verify", path, code=None)
            require(p.returncode in (0, 1, 3, 4), f"{name} cut to {i}/40: exit {p.returncode}")
            if p.returncode == 0:
                require_weights(path)


def nothing_is_lost_in_silence(scratch):
    """Many members, files of weights under other names, shards, and compressed members."""
    small = [(f"d/{i}", b"") for i in range(1100)]
    for name, members in [("late.tar", [*small, ("w.pt", saved())]),
                          ("both.tar", [("w.pt", saved()), *small, ("v.pt", saved())])]:
        p = heft("ls", write(scratch, name, tar(dict(members))), code=5)
        require(b"more than 1024 members" in p.stderr, f"{name}: {p.stderr}")
    for other in "pytorch_model.bin", "flax_model.msgpack", "__0_0.distcp", "m.mpk":
        p = heft("ls", write(scratch, "o.tar", tar({"w.pt": saved(), other: saved()})), code=5)
        require(other.encode() in p.stderr, f"{other}: {p.stderr}")
    require_weights(write(scratch, "bin.zip", packed({"pytorch_model.bin": saved()})))
    mac = {"m/w.pt": saved(), "__MACOSX/m/._w.pt": b"\0\5\x16\7"}
    require_weights(write(scratch, "mac.zip", packed(mac)))
    path = write(scratch, "shard.tar", tar({"m/model-00001-of-00002.pt": saved()}))
    p = heft("convert", "--strict", path, scratch / "s.safetensors", code=5)
    require(b"shard 1 of 2" in p.stderr, p.stderr)
    inner = gzip.compress(tar(nemo()))
    path = write(scratch, "g.tar", tar({"model_weights.ckpt": inner, "b.pt": saved()}))
    p = heft("ls", path, code=3)
    require(b"compressed with gzip" in p.stderr, p.stderr)


def arrays_in_an_archive(scratch):
    array = io.BytesIO()
    numpy.savez(array, a=numpy.arange(6, dtype="f4"))
    for data in packed({"w.npz": array.getvalue()}), tar({"w.npz": array.getvalue()}):
        p = heft("cat", write(scratch, "a.zip", data), "a")
        require(p.stdout == numpy.arange(6, dtype="f4").tobytes(), p.stdout)


def files_beside_an_archive_are_others(scratch):
    """An index in an archive names shards in the archive; those beside it may be any files."""
    heft("convert", write(scratch, "w.pt", saved()), scratch / "w.safetensors")
    heft("split", "--to", "ztensor", "-c", 2, scratch / "w.safetensors", scratch / "set")
    root = next(p for p in (scratch / "set").iterdir() if "-" not in p.name)
    require(heft("verify", root), "the set is not whole")
    path = write(scratch / "set", "m.zip", packed({"m.npz": b"", root.name: root.read_bytes()}))
    heft("verify", path, code=5)
    path = write(scratch / "set", "m.zip", packed({root.name: root.read_bytes()}))
    p = heft("verify", path, code=1)
    require(b"is in an archive" in p.stdout, p.stdout)
    heft("convert", path, scratch / "o.safetensors", code=None)
    require(not (scratch / "o.safetensors").exists(), "files beside the archive were read")


def damaged_archives(scratch):
    """`verify` tells the format of a damaged file; `doctor` knows where the members lie."""
    data = tar(nemo())
    at = data.index(b"PK\1\2") + 20
    path = write(scratch, "d.nemo", data[:at] + b"\xff" + data[at + 1:])
    require(b"sizes differ" in heft("verify", path, code=1).stdout, "not what is damaged")
    p = heft("doctor", path, code=1)
    require(b"zeros" not in p.stdout, f"the end of tar is no unfinished download: {p.stdout}")
    cut = tar({"m.yaml": b"a", "model_weights.ckpt": saved({"w": torch.ones(9999)})})[:20000]
    p = heft("verify", write(scratch, "c.nemo", cut), code=1)
    require(b"are left" in p.stdout, f"not that the archive is cut: {p.stdout}")
    numbers = {"t0": torch.ones(1474), "t1": torch.full((5000,), 2.0)}
    w = write(scratch, "w.pt", saved(numbers))
    heft("convert", w, scratch / "w.safetensors")
    data = tar({"a.yaml": b"q" * 9000, "w.safetensors": (scratch / "w.safetensors").read_bytes()})
    first = data.index(torch.ones(1474).numpy().tobytes())
    hole = (first + 4095) // 4096 * 4096
    require(hole < first + 1474 * 4, "the hole is not in the first tensor")
    path = write(scratch, "z.tar", data[:hole] + bytes(len(data) - hole))
    p = heft("doctor", path, code=1)
    require(b"0 of 2 tensors intact" in p.stdout, p.stdout)


CHECKS = [
    tar_archives, folders, programs_with_an_archive, exported_programs, later_programs, refusals,
    truncated_archives, nothing_is_lost_in_silence, arrays_in_an_archive,
    files_beside_an_archive_are_others, damaged_archives
]
sys.exit(tap.report([(check.__name__.replace("_", " "), run(check)) for check in CHECKS]))
