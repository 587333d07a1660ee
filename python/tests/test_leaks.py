"""No operation keeps references or memory: each runs for many rounds between two counts."""
import gc
import os
import pathlib
import sys

import heft
import pytest
from command_files import write_safetensors
from test_open import arrays, path, write  # noqa: F401

np = pytest.importorskip("numpy")

ROUNDS, WARM = 1000, 50
KEPT_BLOCKS = ROUNDS // 2  # caches of the interpreter; a leak keeps at least a block per round
KEPT_BYTES = 16 << 20  # a leaked buffer or mapping of the file keeps at least 64 KiB per round


def fails(call, *args, **options):
    try:
        call(*args, **options)
    except (heft.Error, TypeError, ValueError, BufferError, IndexError):
        return
    raise AssertionError("an error was expected")


def facts(file):
    for tensor in file.values():
        repr((tensor, tensor.name, tensor.dtype, tensor.shape, tensor.nbytes, tensor.layout,
              tensor.parts, tensor.attributes))
    repr((file, file.format, file.version, file.size, file.shards, file.metadata, file.closed))


def mapping(file):
    list(file), list(file.items()), file.keys(), len(file), "w" in file, "none" in file
    file.get("w"), file.get("none")


def arrays_of(file):
    for name in file:
        tensor = file[name]
        tensor.numpy(), tensor.numpy(copy=True), np.asarray(tensor)
        tensor.to("f64")
    file["w"][1:, ::2]


def buffers(file):
    memory = memoryview(file["w"])
    memory.tolist(), memory.cast("B")
    file["w"].read_into(bytearray(file["w"].nbytes))


def dlpack(file):
    file["w"].__dlpack__()
    file["w"].__dlpack__(max_version=(1, 0))
    np.from_dlpack(file["w"])


def open_and_close(file):
    with heft.open(file.path) as other:
        other["w"].numpy()
    heft.open(file.path)["w"]


def errors(file):
    fails(file.__getitem__, "none")
    fails(file.__getitem__, 3)
    fails(heft.open, file.path + ".none")
    fails(heft.open, __file__)
    fails(file["w"].read_into, bytearray(3))
    fails(file["w"].read_into, bytearray(48), "none")
    fails(file["w"].__dlpack__, copy=False)
    fails(file["w"].__getitem__, 7)
    fails(heft.save, {"a": object()}, file.path + ".saved")


def save_and_load(file):
    target = file.path + ".saved.safetensors"
    heft.save({"w": file["w"], "b": b"1234"}, target, metadata={"step": "1"}, sync=False)
    heft.load(target), heft.load(target, mmap=True), heft.load(target, None)


def logical(file):
    path = pathlib.Path(file.path).with_name("fp8.safetensors")
    if not path.exists():
        write_safetensors(path, {"w": ("F8_E4M3", [2, 2], bytes(4)),
                                 "w_scale": ("F32", [1], bytes(4))})
    with heft.open(path, logical="f32") as f:
        facts(f)
        f["w"].numpy(), f["w"].quantised, f["w"][1:]
    fails(heft.open, path, logical="i8")


OPERATIONS = [facts, mapping, arrays_of, buffers, dlpack, open_and_close, errors, save_and_load,
              logical]


def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def counts():
    gc.collect()
    total = getattr(sys, "gettotalrefcount", lambda: 0)
    return {"blocks": sys.getallocatedblocks(), "objects": len(gc.get_objects()),
            "references": total()}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_rounds_keep_nothing(operation, path):  # noqa: F811
    with heft.open(path) as file:
        for _ in range(WARM):
            operation(file)
        before, bytes_before = counts(), resident()
        for _ in range(ROUNDS):
            operation(file)
        after, bytes_after = counts(), resident()
    grown = {name: after[name] - before[name] for name in before}
    assert max(grown.values()) < KEPT_BLOCKS, grown
    assert bytes_after - bytes_before < KEPT_BYTES


def test_large_memory_is_released(tmp_path):
    large = write(tmp_path / "m.safetensors", w=np.ones((1024, 1024), "f4"))
    heft.load(large)
    before = resident()
    for _ in range(50):
        heft.load(large)
        heft.open(large)["w"].numpy(copy=True)
        heft.open(large)["w"].__dlpack__()
    assert resident() - before < 2 * KEPT_BYTES


def test_reference_counts_of_what_is_borrowed(path):  # noqa: F811
    file = heft.open(path)
    before = sys.getrefcount(file)
    tensors = [file["w"] for _ in range(100)]
    assert sys.getrefcount(file) == before + 100
    views = [memoryview(tensors[0]) for _ in range(100)]
    tensors.clear()
    assert sys.getrefcount(file) == before + 1
    views.clear()
    assert sys.getrefcount(file) == before
