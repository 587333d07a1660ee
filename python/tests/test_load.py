"""Loading whole files, judged by NumPy and torch."""
import threading

import heft
import pytest
from test_open import arrays, path, write  # noqa: F401

np = pytest.importorskip("numpy")


def test_all_tensors_as_arrays(path, arrays):  # noqa: F811
    for loaded in (heft.load(path), heft.load(path, mmap=True)):
        assert list(loaded) == list(arrays)
        for name, array in arrays.items():
            assert loaded[name].dtype == array.dtype and loaded[name].shape == array.shape
            assert np.array_equal(loaded[name], array)
    assert heft.load(path)["w"].flags.writeable
    assert not heft.load(path, mmap=True)["w"].flags.writeable
    assert bytes(heft.load(path, None)["w"]) == arrays["w"].tobytes()


def test_tensors_of_torch(path, arrays):  # noqa: F811
    torch = pytest.importorskip("torch")
    loaded = heft.load(path, "torch")
    for name, array in arrays.items():
        assert torch.equal(loaded[name], torch.from_numpy(array.copy()))


def test_large_tensors_have_memory_of_their_own(tmp_path):
    large = {n: np.random.default_rng(1).random((300, 400), "f4") for n in "ab"}
    loaded = heft.load(write(tmp_path / "m.safetensors", **large, small=np.zeros(3, "f4")))
    assert all(np.array_equal(loaded[n], large[n]) for n in large)
    assert loaded["a"].base is not loaded["b"].base and loaded["a"].ctypes.data % 64 == 0


def test_many_threads_read_one_file(tmp_path):
    big = np.arange(1 << 20, dtype="f4")
    f, wrong = heft.open(write(tmp_path / "m.safetensors", w=big)), []

    def read():
        for _ in range(20):
            if not np.array_equal(f["w"].numpy(copy=True), big):
                wrong.append(1)

    threads = [threading.Thread(target=read) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_buffers_that_do_not_fit(path):  # noqa: F811
    f, other = heft.open(path), heft.open(path)
    for pairs, error in (([(f["w"], bytearray(47))], heft.ArgumentError),
                         ([(other["w"], bytearray(48))], heft.ArgumentError),
                         ([(f["w"], bytes(48))], BufferError), ([f["w"]], (TypeError, SystemError)),
                         ((), TypeError)):
        with pytest.raises(error):
            f._read_many(pairs)
    with pytest.raises(ValueError, match="framework"):
        heft.load(path, "flax")
