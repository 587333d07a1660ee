"""heft.safetensors, judged by bytes built here from the description of the format."""
import io
import json
import os
import pickle
import struct
import threading

import heft
import pytest
from heft.safetensors import (SafetensorError, TensorSpec, _safe_open_handle, deserialize, safe_open,
                              serialize, serialize_file)
from heft.safetensors.numpy import load, load_file, save, save_file
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

ORDER = ["U64", "I64", "F64", "C64", "F32", "U32", "I32", "F16", "U16", "I16", "I8", "U8", "BOOL"]
CODES = {"U64": "u8", "I64": "i8", "F64": "f8", "C64": "c8", "F32": "f4", "U32": "u4", "I32": "i4",
         "F16": "f2", "U16": "u2", "I16": "i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def expected(arrays, metadata=None):
    """Return a file: types in the order above, then by name."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = dict(sorted(metadata.items()))
    of_type = {np.dtype(code).name: name for name, code in CODES.items()}
    rows = sorted(arrays.items(), key=lambda row: (ORDER.index(of_type[row[1].dtype.name]),
                                                   row[0].encode()))
    for name, array in rows:
        header[name] = {"dtype": of_type[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.astype(array.dtype.newbyteorder("<")).tobytes()
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


@pytest.fixture(name="arrays")
def _arrays():
    return {"w": np.arange(50, dtype="f8").reshape(10, 5), "b": np.arange(5, dtype="i4"),
            "one": np.array(2, "f4"), "none": np.zeros((0, 3), "f2"),
            "é\n\"": np.array([True, False])}


@pytest.fixture(name="path")
def _path(tmp_path, arrays):
    save_file(arrays, tmp_path / "m.safetensors", metadata={"k": "v"})
    return tmp_path / "m.safetensors"


# ---- bytes

def test_bytes(arrays, path):
    many = {f"{code}{i}": np.ones(2, code) for code in CODES.values() for i in (1, 0)}
    for tensors, metadata in ((arrays, {"k": "v"}), (many, None), ({}, None), (arrays, {"é": "\t"})):
        assert save(tensors, metadata) == expected(tensors, metadata)
        assert save(dict(reversed(tensors.items())), metadata) == expected(tensors, metadata)
    assert path.read_bytes() == expected(arrays, {"k": "v"})


def test_arrays_that_are_not_in_order_of_their_bytes():
    a = np.arange(6, dtype=">i4").reshape(2, 3)
    assert save({"a": a}) == expected({"a": a})
    assert save({"a": a.T}) == expected({"a": np.ascontiguousarray(a.T)})
    assert save({"a": a[:, ::2]}) == expected({"a": a[:, ::2].copy()})


names = st.text(st.characters(blacklist_categories=("Cs", )), min_size=1, max_size=8).filter(
    lambda name: name != "__metadata__")


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(names, st.tuples(st.sampled_from(sorted(CODES.values())),
                                        st.lists(st.integers(0, 4), max_size=3)), max_size=6))
def test_round_trip(rows):
    arrays = {name: np.ones(shape, code) for name, (code, shape) in rows.items()}
    data = save(arrays)
    assert data == expected(arrays)
    back = load(data)
    assert set(back) == set(arrays)
    assert all(np.array_equal(back[n], arrays[n]) and back[n].dtype == arrays[n].dtype for n in back)


def test_serialize_from_addresses(tmp_path, arrays):
    specs = {n: TensorSpec(dtype=a.dtype.name, shape=a.shape, data_ptr=a.ctypes.data,
                           data_len=a.nbytes) for n, a in arrays.items()}
    assert (specs["w"].dtype, specs["w"].shape) == ("F64", [10, 5])
    assert serialize(specs, {"k": "v"}) == expected(arrays, {"k": "v"})
    serialize_file(specs, tmp_path / "s.safetensors")
    assert (tmp_path / "s.safetensors").read_bytes() == expected(arrays)
    four = np.zeros(3, "u1")
    spec = TensorSpec(dtype="float4_e2m1fn_x2", shape=[1, 3], data_ptr=four.ctypes.data, data_len=3)
    assert (spec.dtype, spec.shape) == ("F4", [1, 6])
    with pytest.raises(SafetensorError, match="float12"):
        TensorSpec(dtype="float12", shape=[1], data_ptr=1, data_len=1)
    with pytest.raises(TypeError):
        TensorSpec("float32", [1], 1, 4)
    for raw in ({"dtype": "float32", "shape": [3], "data": b"x" * 12}, {"dtype": "float32"}, b"x"):
        with pytest.raises(TypeError, match="TensorSpec"):
            serialize({"t": raw})
        with pytest.raises(TypeError, match="TensorSpec"):
            serialize_file({"t": raw}, tmp_path / "raw.safetensors")
    assert not (tmp_path / "raw.safetensors").exists()
    with pytest.raises(SafetensorError):
        serialize({"t": TensorSpec(dtype="float32", shape=[2], data_ptr=four.ctypes.data,
                                   data_len=3)})
    with pytest.raises(SafetensorError, match="address"):
        serialize({"t": TensorSpec(dtype="uint8", shape=[1], data_ptr=0, data_len=1)})


def test_deserialize(arrays):
    found = dict(deserialize(save(arrays)))
    assert [n for n, _ in deserialize(save({"b": arrays["b"], "w": arrays["w"]}))] == ["w", "b"]
    assert found["w"] == {"shape": [10, 5], "dtype": "F64", "data": arrays["w"].tobytes()}
    assert isinstance(found["w"]["data"], bytearray)


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, "text", {"a": None}, [("a", "b")]])
def test_metadata_are_a_dict_of_text(metadata, tmp_path):
    with pytest.raises(TypeError, match="metadata"):
        save({}, metadata)
    with pytest.raises(TypeError, match="metadata"):
        save_file({}, tmp_path / "m.safetensors", metadata)
    assert not os.listdir(tmp_path)


# ---- safe_open

@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_safe_open(path, arrays, backend):
    with safe_open(path, framework="np", device="cpu", backend=backend) as f:
        assert f.keys() == sorted(arrays)
        assert f.offset_keys() == ["w", "one", "b", "none", "é\n\""]
        assert f.metadata() == {"k": "v"}
        for name, array in arrays.items():
            assert np.array_equal(f.get_tensor(name), array)
            assert f.get_slice(name).get_shape() == list(array.shape)
        assert list(f.get_tensors()) == f.offset_keys()
        assert f.get_slice("w").get_dtype() == "F64"
        f.get_tensor("w")[0, 0] = 7  # a copy
        with pytest.raises(SafetensorError, match="File does not contain tensor no"):
            f.get_tensor("no")
    part = f.get_slice
    for use in (f.keys, f.metadata, f.offset_keys, f.get_tensors, f.__enter__,
                lambda: f.get_tensor("w"), lambda: part("w")):
        with pytest.raises(SafetensorError, match="closed"):
            use()


def test_slices(path, arrays):
    w = arrays["w"]
    with safe_open(path, framework="numpy") as f:
        s = f.get_slice("w")
        for index in (np.s_[:], np.s_[:2], np.s_[:, :2], np.s_[0, :2], np.s_[2:, 0], np.s_[2:, -5],
                      np.s_[::3, 1::2], np.s_[..., 1], np.s_[1, ...], np.s_[-3:], np.s_[[1, 2]],
                      np.s_[:, [0, -1]], np.s_[np.int64(3)], np.s_[()], np.s_[20:], np.s_[:0], [],
                      np.s_[:, []], np.s_[1:3, []], [[]]):
            assert np.array_equal(s[index], w[index]), index
        for index, text in (
                (np.s_[2:, -6], "Invalid index -6 for dimension 1 of size 5"),
                (np.s_[2:, 20], "Error during slicing [2:, 20] with shape [10, 5]: index 20 out of "
                                "bounds for tensor dimension #1 of size 5"),
                (np.s_[0, 0, 0], "Error during slicing [0, 0, 0] with shape [10, 5]: more slicing "
                                 "indexes than dimensions in tensor")):
            with pytest.raises(SafetensorError) as e:
                s[index]
            assert str(e.value) == text
        for index in (np.s_[::-1], np.s_[::0], "a", None, 1.5, np.s_[..., ...], [99], True):
            with pytest.raises((SafetensorError, TypeError)):
                s[index]
        assert f.get_slice("none")[:].shape == (0, 3)
        both = f.get_strided_slice("w", dim=1, intervals=[(3, 5), (0, 2), (1, 2)])
        assert np.array_equal(both, w[:, [3, 4, 0, 1, 1]])
        for dim, intervals in ((2, [(0, 1)]), (0, []), (0, [(2, 1)]), (0, [(3, 3)]), (0, [(0, 99)])):
            with pytest.raises(SafetensorError):
                f.get_strided_slice("w", dim=dim, intervals=intervals)
    with pytest.raises(SafetensorError, match="closed"):
        s[0]


def test_open_handles(path, arrays):
    class Short(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 7))

    with open(path, "rb") as binary, open(path, "r", errors="replace") as text:
        for handle in (binary, text, io.BytesIO(path.read_bytes()), Short(path.read_bytes())):
            with _safe_open_handle(handle, framework="np") as f:
                assert f.metadata() == {"k": "v"}
                for name, array in arrays.items():
                    assert np.array_equal(f.get_tensor(name), array)
                assert np.array_equal(f.get_slice("w")[1:, 2], arrays["w"][1:, 2])
                assert set(f.get_tensors()) == set(arrays)
    for data in (b"", b"abc", b"\xff" * 100, path.read_bytes()[:60]):
        with pytest.raises(SafetensorError):
            _safe_open_handle(io.BytesIO(data), framework="np")


# ---- other formats, and errors

@pytest.mark.filterwarnings("ignore::heft.LossWarning")
def test_other_formats(path, arrays, tmp_path):
    for suffix in ("zt", "gguf", "npz"):
        other = tmp_path / f"m.{suffix}"
        heft.convert(path, other, allow_loss=True, keep=["w", "b"])
        found = load_file(other)
        assert np.array_equal(found["w"], arrays["w"]), suffix
        assert np.array_equal(load(other.read_bytes())["b"], arrays["b"])
        with safe_open(other, "np") as f:
            assert np.array_equal(f.get_slice("w")[1], arrays["w"][1])


def test_errors(path, tmp_path):
    for call in (lambda p: safe_open(p, "np"), load_file):
        with pytest.raises(FileNotFoundError) as e:
            call("notafile")
        assert str(e.value) == "No such file or directory: notafile"
    bad = tmp_path / "bad.safetensors"
    for data in (b"", b"something", path.read_bytes()[:40], path.read_bytes()[:-1],
                 struct.pack("<Q", 1 << 40) + b"{}"):
        bad.write_bytes(data)
        for call in (lambda: safe_open(bad, "np"), lambda: load_file(bad), lambda: load(data)):
            with pytest.raises(SafetensorError, match="Error while deserializing"):
                call()
    for arguments in (("x", ), ("np", "cuda"), ("np", 0)):
        with pytest.raises(SafetensorError, match="invalid"):
            safe_open(path, *arguments)
    with pytest.raises(SafetensorError, match="backend"):
        safe_open(path, "np", backend="x")
    with pytest.raises(TypeError):
        safe_open(None, "np")
    with pytest.raises(TypeError):
        save({1: np.zeros(1)})
    with pytest.raises(TypeError, match="'a'"):
        save({"a": object()})
    error = pickle.loads(pickle.dumps(SafetensorError("x")))
    assert isinstance(error, SafetensorError) and error.args == ("x", )
    assert SafetensorError.__module__ == "heft.safetensors"


def test_many_threads(tmp_path, arrays):
    paths = [tmp_path / f"{i}.safetensors" for i in range(8)]
    problems = []

    def use(path):
        try:
            for _ in range(20):
                save_file(arrays, path)
                assert np.array_equal(load_file(path)["w"], arrays["w"])
        except Exception as e:  # pylint: disable=broad-except
            problems.append(e)

    threads = [threading.Thread(target=use, args=(p, )) for p in paths]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
