"""Slices against NumPy, without a mapping, and of files that are truncated while they are open."""
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays_of

import heft

SHAPE = (6, 5, 4)
WHOLE = np.arange(120, dtype="f4").reshape(SHAPE)


@pytest.fixture(name="path", scope="module")
def _path(tmp_path_factory):
    path = tmp_path_factory.mktemp("slices") / "m.zt"
    many = np.arange(200000, dtype="i4").reshape(1000, 200)
    heft.save({"w": WHOLE, "many": many, "scalar": np.array(3.5), "empty": np.empty((0, 3), "f4")},
              path)
    return path


def assert_same(got, expected):
    assert type(got) is type(expected)
    assert got.shape == expected.shape and got.dtype == expected.dtype
    assert np.array_equal(got, expected)


@settings(deadline=None, max_examples=300)
@given(index=st.one_of(
    arrays_of.basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True),
    arrays_of.integer_array_indices(SHAPE),
    st.tuples(st.lists(st.integers(-6, 5), max_size=9)),
    st.tuples(st.slices(6), st.lists(st.integers(-5, 4), max_size=9), st.slices(4)),
    st.tuples(st.integers(-6, 5), st.lists(st.integers(-5, 4), min_size=1, max_size=9)),
    st.tuples(st.lists(st.integers(-6, 5), min_size=1), st.slices(5), st.integers(-4, 3)),
    st.tuples(st.integers(0, 5), st.slices(5), st.lists(st.integers(0, 3), min_size=1))))
def test_slices_are_those_of_numpy(path, index):
    index = tuple(np.array(i, dtype=int) if isinstance(i, list) else i for i in index) \
        if isinstance(index, tuple) else index
    with heft.open(path) as f:
        assert_same(f["w"][index], WHOLE[index])


@pytest.mark.parametrize("index", [
    WHOLE > 50, np.arange(6) > 2, True, False, None, (None, 2), (..., None), np.int8(3),
    (slice(None), np.arange(5) % 2 == 0), ([1, 2], [3, 4]), ([[1], [2]], [3, 4]), (),
    ([0, 1, 2, 5, 5, 4], slice(None), slice(None, None, -1)), ([True] + [False] * 5, 1)
])
def test_other_indices_of_numpy(path, index):
    with heft.open(path) as f:
        assert_same(f["w"][index], WHOLE[index])


@pytest.mark.parametrize("index", [6, -7, (0, 0, 0, 0), (..., ...), 1.5, "w", ([6], ), [[0, 9]]])
def test_indices_that_numpy_refuses(path, index):
    with heft.open(path) as f, pytest.raises(IndexError):
        f["w"][index]


def test_scalars_and_empty_tensors(path):
    with heft.open(path) as f:
        assert f["scalar"][()] == 3.5 and f["scalar"][...] == 3.5
        assert f["empty"][:, 1].shape == (0, ) and f["empty"][...].shape == (0, 3)


def test_slices_are_copies(path):
    with heft.open(path) as f:
        rows = f["w"][1:3]
        rows += 1
        assert_same(f["w"][1:3], WHOLE[1:3])


def test_only_the_needed_bytes_are_read(path):
    """Damage outside of the slice goes unnoticed, also where the whole tensor has a digest."""
    damaged = path.with_name("damaged.zt")
    heft.save({"w": WHOLE}, damaged, digest="crc32c")
    with heft.open(damaged) as f:
        at = f["w"].parts[0]["offset"]
    with open(damaged, "r+b") as file:
        file.seek(at + 4 * 100)
        file.write(struct.pack("f", -1))
    with heft.open(damaged) as f:
        assert_same(f["w"][1:3, ::2], WHOLE[1:3, ::2])
        with pytest.raises(heft.ChecksumError):
            f["w"].numpy()


@pytest.mark.parametrize("version", ["1.2", "2"])
def test_slices_of_compressed_tensors(tmp_path, version):
    path = tmp_path / "m.zt"
    heft.save({"w": WHOLE}, path, version=version, compress="zstd")
    with heft.open(path) as f:
        assert_same(f["w"][1::2, [3, 1]], WHOLE[1::2, [3, 1]])


def test_slices_of_strided_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt"
    torch.save({"w": torch.arange(120.0).reshape(SHAPE).permute(2, 0, 1)}, path)
    with heft.open(path) as f:
        assert_same(f["w"][1:, ::-1, 2], WHOLE.transpose(2, 0, 1)[1:, ::-1, 2])


def test_without_a_mapping(path):
    def mapped():
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return str(path) in maps.read()

    with heft.open(path, mmap=False) as f:
        assert not mapped()
        assert_same(f["w"].numpy(), WHOLE)
        assert_same(f["w"][2:, 1], WHOLE[2:, 1])
        assert bytes(memoryview(f["w"])) == WHOLE.tobytes() and not mapped()
    with heft.open(path) as f:
        assert mapped() and len(f)


def uses(tensor):
    """Return every way that copies elements."""
    return [
        lambda: tensor.numpy(copy=True), lambda: tensor.to("f64"),
        lambda: tensor.read_into(bytearray(tensor.nbytes)), lambda: tensor[998:],
        lambda: tensor[:, 3], lambda: tensor[[999, 5]], lambda: tensor.read_part("data"),
        lambda: tensor.__dlpack__(), lambda: tensor.__dlpack__(max_version=(1, 0), copy=True)
    ]


@pytest.mark.parametrize("mmap", [True, False])
def test_truncated_files_raise(path, tmp_path, mmap):
    cut = tmp_path / "cut.zt"
    cut.write_bytes(path.read_bytes())
    f = heft.open(cut, mmap=mmap)
    tensor = f["many"]
    os.truncate(cut, tensor.parts[0]["offset"] + 4096)
    for use in uses(tensor):
        with pytest.raises(heft.IOError):
            use()
    if not mmap:
        with pytest.raises(heft.IOError):
            tensor.numpy()
    with pytest.raises(heft.Error):
        f._read_many([(tensor, bytearray(tensor.nbytes))])


FACTS = [
    lambda f: f.keys(), lambda f: f["w5"], lambda f: "w5" in f, lambda f: f.metadata,
    lambda f: [t.name for t in f.values()], lambda f: list(f), lambda f: dict(f.items()),
]
TENSOR_FACTS = [lambda t: t.name, repr, lambda t: t.attributes, lambda t: t.numpy(),
                lambda t: t.layout, lambda t: t[1]]


@pytest.mark.parametrize("suffix", ["zt", "safetensors", "gguf", "mag", "bpk"])
def test_facts_of_truncated_files_raise(tmp_path, suffix):
    """Names and metadata are read from the mapped file."""
    path = tmp_path / f"m.{suffix}"
    arrays = {f"w{i}": np.zeros(100, "f4") for i in range(3000)}
    for use in FACTS:
        heft.save(arrays, path, metadata={"a": "b" * 9000}, replace=True)
        with heft.open(path) as f:
            os.truncate(path, 0)
            with pytest.raises(heft.IOError):
                use(f)
    for use in TENSOR_FACTS:
        heft.save(arrays, path, replace=True)
        with heft.open(path) as f:
            tensor = f["w2999"]
            os.truncate(path, 0)
            try:
                use(tensor)  # either known without the file, or an exception
            except heft.IOError:
                pass


def test_array_interface(path):
    with heft.open(path) as f:
        interface = f["w"].__array_interface__
        assert (interface["shape"], interface["typestr"]) == (SHAPE, "<f4")

        class Only:
            __array_interface__ = interface

        array = np.asarray(Only())
    del interface, Only
    assert_same(array, WHOLE)
    assert not array.flags.writeable
