"""Saving arrays, judged by NumPy's and torch's own bytes and by reading with another program."""
import array
import json
import struct
import warnings

import heft
import pytest

np = pytest.importorskip("numpy")


def header(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def stored(path, name):
    head, data = header(path)
    begin, end = head[name]["data_offsets"]
    return head[name]["dtype"], head[name]["shape"], data[begin:end]


def test_arrays_of_every_kind(tmp_path):
    path = tmp_path / "m.safetensors"
    w = np.arange(12, dtype="f4").reshape(3, 4)
    heft.save({
        "plain": w, "turned": w.T, "step": w[:, ::2], "big": w.astype(">f4"), "scalar": np.float64(2),
        "empty": np.zeros((0, 3), "i2"), "bytes": b"abc", "array": array.array("q", [1, -2]),
        "view": memoryview(w)[1:]
    }, path, metadata={"format": "np"})
    assert header(path)[0]["__metadata__"] == {"format": "np"}
    assert stored(path, "plain") == ("F32", [3, 4], w.tobytes())
    assert stored(path, "turned") == ("F32", [4, 3], np.ascontiguousarray(w.T).tobytes())
    assert stored(path, "step") == ("F32", [3, 2], np.ascontiguousarray(w[:, ::2]).tobytes())
    assert stored(path, "big") == ("F32", [3, 4], w.tobytes())
    assert stored(path, "scalar") == ("F64", [], struct.pack("<d", 2))
    assert stored(path, "empty") == ("I16", [0, 3], b"")
    assert stored(path, "bytes") == ("U8", [3], b"abc")
    assert stored(path, "array") == ("I64", [2], struct.pack("<2q", 1, -2))
    assert stored(path, "view") == ("F32", [2, 4], w[1:].tobytes())


def test_tensors_of_torch_and_of_files(tmp_path):
    torch = pytest.importorskip("torch")
    path, copy = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    t = torch.arange(6).reshape(2, 3)
    heft.save({"h": t.to(torch.bfloat16), "turned": t.T, "grad": torch.ones(2, requires_grad=True),
               "scalar": torch.tensor(True)}, path)
    assert stored(path, "h")[:2] == ("BF16", [2, 3])
    assert stored(path, "turned") == ("I64", [3, 2], t.T.contiguous().numpy().tobytes())
    assert stored(path, "scalar") == ("BOOL", [], b"\1")
    f = heft.open(path)
    heft.save(f, copy)
    assert all(stored(copy, n) == stored(path, n) for n in f)
    with pytest.raises(TypeError, match="'s'.*sparse"):
        heft.save({"s": torch.eye(2).to_sparse()}, copy)


def test_losses(tmp_path):
    path = tmp_path / "m.npz"
    with pytest.warns(heft.LossWarning, match="metadata") as w:
        heft.save({"w": np.ones(3)}, path, metadata={"a": "b"})
    assert w[0].message.rule and np.load(path)["w"].tolist() == [1, 1, 1]
    before = path.read_bytes()
    with pytest.raises(heft.LossError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        heft.save({"w": np.zeros(3)}, path, metadata={"a": "b"}, strict=True)
    with pytest.raises(heft.LossWarning), warnings.catch_warnings():
        warnings.simplefilter("error")
        heft.save({"w": np.ones(3)}, path, metadata={"a": "b"})
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"] and path.read_bytes() == before


def test_bad_arguments(tmp_path):
    path = tmp_path / "m.safetensors"
    for tensors, error in (({"w": "text"}, TypeError), ({3: b"a"}, TypeError),
                           ({"w": np.array(["a"])}, TypeError), ({"w": [1, 2]}, TypeError)):
        with pytest.raises(error):
            heft.save(tensors, path)
    for more, error in (({"format": "none"}, heft.NotFoundError), ({"compress": "lz4"}, ValueError),
                        ({"metadata": {"a": object()}}, TypeError), ({"align": -1}, (
                            OverflowError, ValueError)), ({"metadata": {3: "a"}}, TypeError)):
        with pytest.raises(error):
            heft.save({"w": b"a"}, path, **more)
    with pytest.raises(heft.ArgumentError):
        heft.save({"w": b"a"}, tmp_path / "m.unknown")
    heft.save({"w": b"a"}, path)
    with pytest.raises(heft.ArgumentError, match="exists"):
        heft.save({"w": b"b"}, path, replace=False)
    assert heft.load(path)["w"].tobytes() == b"a" and len(list(tmp_path.iterdir())) == 1
