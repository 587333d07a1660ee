"""Parts of tensors, sparse tensors and vocabularies, judged by NumPy, torch and the command."""
import json
import subprocess

import heft
import pytest
from heft import _child

np = pytest.importorskip("numpy")

DENSE = np.array([[0, 1, 0], [2, 0, 3]], "f4")


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "m.zt"
    with heft.Writer(path, version="2", digest="xxh3") as out:
        csr = out.declare("csr", "f32", (2, 3), layout="sparse_csr",
                          parts=[("values", "f32", 3), ("indices", "u64", 3), ("indptr", "u64", 3)])
        coo = out.declare("coo", "f32", (2, 3), layout="sparse_coo",
                          parts=[("values", "f32", 3), ("coords", "u64", 6)])
        dense = out.declare("dense", "f32", (2, 3))
        out.begin()
        values = np.array([1, 2, 3], "f4")
        for part, data in zip([*csr, *coo, dense], (
                values, np.array([1, 0, 2], "u8"), np.array([0, 1, 3], "u8"), values,
                np.array([0, 1, 1, 1, 0, 2], "u8"), DENSE)):
            part.write(data)
    return path


def test_sparse_tensors(path):
    f = heft.open(path)
    indptr, indices, values = f["csr"].sparse()
    assert [a.tolist() for a in (indptr, indices, values)] == [[0, 1, 3], [1, 0, 2], [1, 2, 3]]
    made = np.zeros((2, 3), "f4")
    coordinates, values = f["coo"].sparse()
    made[tuple(coordinates)] = values
    assert np.array_equal(made, DENSE)
    with pytest.raises(heft.UnsupportedError, match="dense"):
        f["dense"].sparse()
    with pytest.raises(ValueError):
        f["csr"].sparse("jax")


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_sparse_tensors_of_torch(path):
    pytest.importorskip("torch")
    f = heft.open(path)
    for name in ("csr", "coo"):
        assert np.array_equal(f[name].sparse("torch").to_dense().numpy(), DENSE)


def test_sparse_arrays_of_scipy(path):
    pytest.importorskip("scipy")
    f = heft.open(path)
    for name in ("csr", "coo"):
        assert np.array_equal(f[name].sparse("scipy").toarray(), DENSE)


def test_parts(path):
    t = heft.open(path)["dense"]
    assert t.read_part("data") == DENSE.tobytes()
    with pytest.raises(heft.NotFoundError):
        t.read_part("scale")
    with pytest.raises(TypeError):
        t.read_part(1)
    f = heft.open(path)
    tensor = f["dense"]
    f.close()
    with pytest.raises(heft.ArgumentError, match="closed"):
        tensor.read_part("data")


def test_damage_is_found(path):
    data = bytearray(path.read_bytes())
    data[data.index(DENSE.tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(heft.ChecksumError):
        heft.open(path)["dense"].read_part("data")


def test_vocabularies(tmp_path):
    source, path = tmp_path / "m.safetensors", tmp_path / "m.weights"
    heft.save({"w": np.zeros(2, "f4")}, source)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\nthe\ncaf\u00e9\n", encoding="utf-8")
    heft.convert(source, path, vocab=tmp_path / "vocab.txt")
    tokens, special = heft.open(path).vocab
    assert tokens == ["[PAD]", "[UNK]", "the", "caf\u00e9"]
    assert (special["pad"], special["unk"], special["mask"]) == (0, 1, None)
    assert heft.open(source).vocab is None
    told = json.loads(subprocess.run([_child.COMMAND, "info", "--json", path], check=True,
                                     capture_output=True).stdout)
    assert told["vocabulary"]["tokens"] == len(tokens)
