"""check_requests.py HEFT: how many requests it takes to list the tensors of a file in each format, and
how many bytes to read them.

A file has 300 tensors of 16 KiB, or an index that the first request does not hold."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "py"))
from gen_torch import plain, zipped
from loopback import Server, check, heft, run, safetensors

SHAPES = {"": (0, 300, 16 << 10), ", long index": (2 << 20, 4000, 64)}
MOST = {  # format and options of its conversion: the largest number of requests by shape
    "safetensors": (2, 2), "gguf": (2, 2), "mag": (2, 2), "mag --format-version 100": (2, 2),
    "mag --format-version snapshot": (2, 2), "burnpack": (2, 2), "gptrs-checkpoint": (2, 2),
    "gptrs-archive": (2, 2), "embd": (2, 3), "ztensor": (3, 3), "ztensor --format-version 1.1": (3, 3),
    "ztensor --format-version 1.2": (3, 3), "ztensor --format-version 2": (3, 3),
    # One tensor is the whole file.
    "npy": (None, 2),
    # A header precedes each tensor, and the headers are 16 KiB apart in the first shape.
    "embd --format-version simple": (3, None), "npz": (3, None),
}


def model(shape):
    large, tensors, size = shape
    return safetensors({"large": os.urandom(large)} | {
        f"model.layers.{i}.attention.weight": os.urandom(size) for i in range(tensors)}, dtype="F32")


def converted(folder, source, form):
    name, *options = form.split()
    path = pathlib.Path(folder, "converted")
    if name == "npy":
        options += ["--keep", "large"]
    code, _, err = heft("convert", "--force", "--allow-loss", "--to", name, *options, source, str(path))
    return path.read_bytes() if code == 0 else err


server = Server({"/small": safetensors({"a": b"b"})})


def count(name, data, most):
    if isinstance(data, str):
        check(f"{name} is written", False, data)
        return
    server.reset()
    server.files["/model"] = data
    code, out, err = heft("ls", f"{server.url}/model")
    ranges = [r[1].get("Range") for r in server.requests]
    check(f"{name}: at most {most} requests, {len(ranges)} counted",
          code == 0 and len(data) > 1 << 20 and 0 < len(ranges) <= most, code, err, len(data), ranges)


def formats():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "source.safetensors")
        for which, title in enumerate(SHAPES):
            source.write_bytes(model(SHAPES[title]))
            for form, most in MOST.items():
                if most[which]:
                    count(form + title, converted(folder, str(source), form), most[which])


def torch():
    _, tensors, size = SHAPES[""]
    count("torch, an archive", zipped({f"layer.{i}": plain((size // 4,), i) for i in range(tensors)}), 3)


def sparse():
    """Headers between tensors of 96 KiB and of 512 KiB are read without the tensors."""
    for size in (96 << 10, 512 << 10):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "source.safetensors")
            source.write_bytes(model((0, 48 if size > 1 << 18 else 64, size)))
            for form in ("npz", "embd --format-version simple"):
                data = converted(folder, str(source), form)
                server.reset()
                server.files["/model"] = data
                code, out, err = heft("ls", "--raw", f"{server.url}/model")
                check(f"{form}: headers {size} bytes apart are read without the data", code == 0 and
                      server.bytes < min(2 << 20, len(data) / 3), code, err, server.bytes, len(data))


def statistics():
    """Two threads read a tensor each, twice; the file is larger than the memory for its blocks."""
    for count, mib in ((6, 16), (2, 48)):
        data = safetensors({f"layer.{i}": bytes(mib << 20) for i in range(count)}, dtype="F32")
        server.reset()
        server.files["/model"] = data
        code, _, err = heft("stats", f"{server.url}/model")
        check(f"heft stats of {count} tensors requests every byte once", code == 0 and server.bytes == len(data),
              code, err, server.bytes, len(data), [r[1].get("Range") for r in server.requests])


run(f"{server.url}/small", (formats, torch, sparse, statistics))
