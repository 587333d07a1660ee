"""Opening files and reading tensors, judged by NumPy and torch."""
import collections.abc
import json
import struct
import subprocess
import sys

import heft
import pytest

np = pytest.importorskip("numpy")


def write(path, **arrays):
    """Write arrays, or (dtype, shape, bytes), as safetensors."""
    header, data = {"__metadata__": {"format": "np"}}, b""
    names = {"float32": "F32", "int64": "I64", "bool": "BOOL", "float16": "F16"}
    for name, a in arrays.items():
        dtype, shape, content = a if isinstance(a, tuple) else (
            names[str(a.dtype)], a.shape, a.tobytes())
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.fixture
def arrays():
    return {
        "w": np.arange(12, dtype="f4").reshape(3, 4), "n": np.array([-1, 2**40]),
        "empty": np.zeros((0, 3), "f4"), "scalar": np.array(2.5, "f2"), "b": np.array([True, False])
    }


@pytest.fixture
def path(tmp_path, arrays):
    return write(tmp_path / "m.safetensors", **arrays)


def test_a_file_is_a_mapping(path, arrays):
    with heft.open(path) as f:
        assert isinstance(f, collections.abc.Mapping)
        assert list(f) == f.keys() == list(arrays) and len(f) == 5
        assert "w" in f and "x" not in f and 3 not in f
        assert f.get("x") is None and f.get("w").name == "w" and len(f.values()) == 5
        assert [(n, t.name) for n, t in f.items()] == [(n, n) for n in arrays]
        assert (f.format, f.metadata, f.shards) == ("safetensors", {"format": "np"}, [])
        assert (f["w"].dtype, f["w"].shape, f["w"].nbytes) == ("f32", (3, 4), 48)


def test_arrays_are_those_that_were_written(path, arrays):
    f = heft.open(str(path))
    for name, array in arrays.items():
        for got in (f[name].numpy(), f[name].numpy(copy=True), np.asarray(f[name])):
            assert got.dtype == array.dtype and got.shape == array.shape
            assert np.array_equal(got, array)
    assert not f["w"].numpy().flags.writeable and f["w"].numpy(copy=True).flags.writeable


def test_memory_outlives_the_file(path, arrays):
    f = heft.open(path)
    tensor = f["w"]
    view, array = memoryview(tensor), tensor.numpy()
    f.close()
    assert view.shape == (3, 4) and view[1, 2] == 6 and view.readonly
    assert np.array_equal(array, arrays["w"])
    for use in (lambda: tensor.shape, lambda: memoryview(tensor), lambda: f["w"], lambda: len(f)):
        with pytest.raises(heft.ArgumentError, match="closed"):
            use()
    f.close()


def test_types_without_a_struct_format(tmp_path):
    path = write(tmp_path / "m.safetensors", h=("BF16", (2, ), b"\x80\x3f\x20\xc0"))
    tensor = heft.open(path)["h"]
    assert bytes(memoryview(tensor)) == b"\x80\x3f\x20\xc0"
    assert tensor.to("f32").tolist() == [1.0, -2.5]
    if "ml_dtypes" not in sys.modules:
        with pytest.raises(heft.UnsupportedError, match="ml_dtypes.*torch"):
            tensor.numpy()
    torch = pytest.importorskip("torch")
    assert torch.equal(tensor.torch(), torch.tensor([1.0, -2.5], dtype=torch.bfloat16))


def test_more_dimensions_than_a_memoryview_has(tmp_path):
    path = write(tmp_path / "m.safetensors", t=("F32", (1, ) * 65, b"\0\0\x80\x3f"))
    tensor = heft.open(path)["t"]
    assert len(tensor.shape) == 65 and bytes(memoryview(tensor)) == b"\0\0\x80\x3f"
    assert memoryview(tensor).ndim == 1 and memoryview(tensor).format == "B"


def test_errors_are_exceptions_of_their_kinds(path, tmp_path):
    f = heft.open(path)
    with pytest.raises(KeyError, match="no tensor 'x'") as e:
        f["x"]
    assert isinstance(e.value, heft.NotFoundError) and e.value.status == "not-found"
    assert e.value.tensor == "x"
    with pytest.raises(OSError) as e:
        heft.open(tmp_path / "absent")
    assert e.value.errno == 2 and isinstance(e.value, heft.IOError)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(heft.FormatError) as e:
        heft.open(path)
    assert e.value.status == "format"
    with pytest.raises(heft.NotFoundError):
        heft.open(path, format="none such")
    for wrong in (3, None, b"\0", "a\0b"):
        with pytest.raises((TypeError, ValueError, OSError)):
            heft.open(wrong)
    with pytest.raises(TypeError):
        f[3]


def test_reading_into_a_buffer_of_the_wrong_size(path):
    tensor = heft.open(path)["w"]
    with pytest.raises(heft.ArgumentError, match="48"):
        tensor.read_into(bytearray(47))
    with pytest.raises((TypeError, BufferError)):
        tensor.read_into(bytes(48))


def test_numpy_is_imported_on_first_use(path):
    code = ("import heft, sys; f = heft.open(sys.argv[1]); memoryview(f['w']); "
            "sys.exit('numpy' in sys.modules or 'torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


def test_slices_and_parts(path, arrays):
    f = heft.open(path)
    w = arrays["w"]
    for index in (np.s_[1], np.s_[1:, ::2], np.s_[..., -1], np.s_[::-1], np.s_[[0, 2]], np.s_[2, 3]):
        assert np.array_equal(f["w"][index], w[index])
    with pytest.raises(IndexError):
        f["w"][3]
    (part, ) = f["w"].parts
    assert (part["role"], part["encoding"], part["nbytes"]) == ("data", "raw", 48)
    at = part["offset"]
    assert path.read_bytes()[at:at + part["stored"]] == w.tobytes()


class Old:
    """A consumer that asks as DLPack before 1.0."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **ignored):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_dlpack_gives_old_consumers_a_copy(path, arrays):
    f = heft.open(path)
    for name in ("w", "n", "scalar", "empty"):
        got = np.from_dlpack(Old(f[name]))
        assert got.dtype == arrays[name].dtype and np.array_equal(got, arrays[name])
    torch = pytest.importorskip("torch")
    got = torch.from_dlpack(Old(f["w"]))
    got += 1  # must not write to the mapped file
    assert np.array_equal(heft.open(path)["w"].numpy(), arrays["w"])


def test_dlpack_capsules_that_nobody_uses(path):
    f = heft.open(path)
    for _ in range(100):
        f["w"].__dlpack__()
        f["w"].__dlpack__(max_version=(1, 0))
        f["w"].__dlpack__(max_version=(1, 0), copy=True)
    assert "dltensor_versioned" in repr(f["w"].__dlpack__(max_version=(1, 1)))
    assert f["w"].__dlpack_device__() == (1, 0)
    for wrong in ({"copy": False}, {"dl_device": (2, 0)}, {"stream": 1}):
        with pytest.raises(BufferError):
            f["w"].__dlpack__(**wrong)
