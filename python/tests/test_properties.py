"""Any slices, and any arrays saved and loaded, judged by NumPy."""
import os
import threading

import heft
import pytest
from test_open import write

np = pytest.importorskip("numpy")
hypothesis = pytest.importorskip("hypothesis")

from hypothesis import given, settings, strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

DTYPES = ["bool", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"]
ANY = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(
    dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)))
NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12)
FEWER = 10 if os.environ.get("HEFT_TEST_FEWER") else 1
ONE = settings(max_examples=150 // FEWER, deadline=None)
SHAPE = (4, 3, 5)


def same(a, b):
    """Compare every bit, NaN included."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("slices") / "m.safetensors"
    return heft.open(write(path, w=np.arange(60, dtype="f4").reshape(SHAPE)))


@ONE
@given(index=hnp.basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True))
def test_slices(file, index):
    assert same(np.asarray(file["w"][index]), np.asarray(file["w"].numpy()[index]))
    assert same(np.asarray(file["w"][index]),
                np.asarray(np.arange(60, dtype="f4").reshape(SHAPE)[index]))


@ONE
@given(index=hnp.integer_array_indices(SHAPE))
def test_arrays_of_indices(file, index):
    assert same(file["w"][index], np.arange(60, dtype="f4").reshape(SHAPE)[index])


@pytest.mark.parametrize("suffix", ["safetensors", "zt", "npz"])
@settings(max_examples=40 // FEWER, deadline=None)
@given(tensors=st.dictionaries(NAMES.filter(lambda n: n != "__metadata__" and "/" not in n), ANY,
                               min_size=1, max_size=4))
def test_saved_arrays_are_loaded(tmp_path_factory, suffix, tensors):
    path = tmp_path_factory.mktemp("saved") / f"m.{suffix}"
    try:
        heft.save(tensors, path, sync=False)
    except heft.LossError:
        return
    loaded = heft.load(path)
    assert loaded.keys() == tensors.keys()
    assert all(same(loaded[name], tensors[name]) for name in tensors)
    if suffix == "npz":
        with np.load(path) as judge:
            assert all(same(judge[name], tensors[name]) for name in tensors)


@ONE
@given(array=ANY, order=st.permutations(range(4)), step=st.sampled_from([1, -1, 2]))
def test_arrays_of_any_strides_are_saved_in_rows(tmp_path_factory, array, order, step):
    axes = [axis for axis in order if axis < array.ndim]
    array = array.transpose(axes)[..., ::step] if array.ndim else array
    path = tmp_path_factory.getbasetemp() / "strides.npy"
    heft.save({"data": array}, path, sync=False)
    assert same(np.load(path), np.ascontiguousarray(array).reshape(array.shape))


def test_threads_use_one_file_in_every_way(tmp_path):
    arrays = {f"t{i}": np.random.default_rng(i).random((64, 64), "f4") for i in range(32)}
    file, wrong = heft.open(write(tmp_path / "m.safetensors", **arrays)), []

    def read(seed):
        try:
            for i in range(100):
                name = f"t{(seed + i) % 32}"
                tensor = file[name]
                got = (tensor.numpy, lambda: tensor.numpy(copy=True), lambda: tensor[...],
                       lambda: np.from_dlpack(tensor), lambda: heft.load(file.path)[name])[i % 5]()
                if not same(got, arrays[name]) or tensor.shape != (64, 64):
                    wrong.append(name)
        except BaseException as error:  # the thread would otherwise end without a failure
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(seed, )) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_close_a_file_that_others_read(tmp_path):
    path = write(tmp_path / "m.safetensors", w=np.arange(4096, dtype="f4"))
    wrong = []

    def read(file):
        try:
            while True:
                if file["w"].numpy()[7] != 7 or memoryview(file["w"])[8] != 8:
                    wrong.append("other values")
        except heft.ArgumentError as error:
            if "closed" not in str(error):
                wrong.append(error)

    for _ in range(20):
        file = heft.open(path)
        threads = [threading.Thread(target=read, args=(file, )) for _ in range(4)]
        for thread in threads:
            thread.start()
        file.close()
        for thread in threads:
            thread.join()
    assert not wrong
