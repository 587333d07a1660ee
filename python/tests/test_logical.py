"""heft.open(logical=True): quantised tensors are one tensor each, decoded when they are read."""
import json
import os
import pathlib
import subprocess
import sys

import heft
import pytest

from command_files import write_safetensors

np = pytest.importorskip("numpy")
TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
sys.path.append(str(TESTS / "py"))
import check_dequantize as judge  # pylint: disable=wrong-import-position

FP8, GPTQ = "fp8.safetensors", "gptq.safetensors"
WRITE = "import json, quantised_samples; print(json.dumps(quantised_samples.write()))"


@pytest.fixture
def values(tmp_path, monkeypatch):
    """Write the models, and return the numbers of the quantised tensors by name."""
    monkeypatch.chdir(tmp_path)
    p = subprocess.run([sys.executable, "-c", WRITE], check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(TESTS / "cli")})
    return {name: np.array(numbers, "f4") for name, numbers in json.loads(p.stdout).items()}


@pytest.mark.parametrize("case", judge.CASES, ids=lambda case: case.title)
def test_every_scheme_is_decoded(case, tmp_path):
    """The judge is NumPy, from the definitions of the schemes."""
    with np.errstate(all="ignore"):
        stored, _, decoded = judge.make(case)
    judge.models.write(tmp_path / "m", {**judge.ordinary(case.kept), **stored}, case.settings)
    with heft.open(tmp_path / "m", logical="f32") as f:
        assert {name for name in f if f[name].quantised} == set(decoded)
        for name, (want, _) in decoded.items():
            got = f[name].numpy()
            same = (got.view("u4") == want.astype("f4").view("u4")) | np.isnan(got) & np.isnan(want)
            assert same.all(), name


def bf16(array):
    """Round to the nearest bf16, ties to even."""
    bits = array.view("u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view("f4")


@pytest.mark.parametrize("path, dtype", [(FP8, "bf16"), (GPTQ, "f16")])
def test_tensors_are_those_that_are_represented(values, path, dtype):
    with heft.open(path, logical=True) as f:
        assert all("scale" not in name for name in f) and "norm" in f
        for name in set(values) & set(f):
            want = bf16(values[name]) if dtype == "bf16" else values[name].astype(dtype).astype("f4")
            assert f[name].dtype == dtype and f[name].layout == "dense"
            assert f[name].nbytes == 2 * want.size == len(bytes(f[name]))
            assert np.array_equal(f[name].to("f32").reshape(-1), want)
        assert f["norm"].numpy().tolist() == [1, 2] and f["norm"].quantised is None


@pytest.mark.parametrize("path", [FP8, GPTQ])
def test_numbers_of_a_chosen_type(values, path):
    with heft.open(path, logical="f32") as f:
        for name in set(values) & set(f):
            want, tensor = values[name].reshape(f[name].shape), f[name]
            assert np.array_equal(tensor.numpy(), want)
            assert np.array_equal(tensor.numpy(copy=True), want)
            assert np.array_equal(np.from_dlpack(tensor), want)
            assert np.array_equal(tensor[1:5:2, ::-3], want[1:5:2, ::-3])
            assert np.array_equal(tensor[[3, 0]], want[[3, 0]])
            assert bytes(tensor.read_part("data")) == want.tobytes()
        names = set(f)
    loaded = heft.load(path, logical="f32")
    assert set(loaded) == names
    assert all(np.array_equal(loaded[name].reshape(-1), values[name])
               for name in set(values) & names)


def test_arrays_outlive_the_file(values):
    with heft.open(FP8, logical="f32") as f:
        array, tensor = f["b.weight"].numpy(), f["b.weight"]
    del f
    assert np.array_equal(array.reshape(-1), values["b.weight"])
    with pytest.raises(heft.ArgumentError, match="closed"):
        tensor.numpy()


def test_facts_are_those_of_the_file(values):
    del values
    with heft.open(FP8) as stored, heft.open(FP8, logical=True) as f:
        for fact in ("path", "format", "version", "size", "shards", "metadata", "vocab"):
            assert getattr(f, fact) == getattr(stored, fact)
        assert f["norm"].parts == stored["norm"].parts and f["a.weight"].parts == []
        assert f["b.weight"].quantised == {
            "scheme": "fp8", "variant": None, "bits": 8, "block": (128, 128),
            "parts": {"weight": "b.weight", "scale": "b.weight_scale_inv"}}
        assert stored["b.weight"].quantised is None


def mlx(folder):
    """Write a model of MLX: only its settings tell 4 bits in groups of 32 from 8 bits of 16."""
    rng = np.random.default_rng(5)
    words = rng.integers(0, 1 << 32, (3, 8), dtype="u4")
    scales, biases = (rng.normal(size=(3, 2)).astype("f2") for _ in range(2))
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", {
        "w.weight": ("U32", [3, 8], words.tobytes()), "w.scales": ("F16", [3, 2], scales.tobytes()),
        "w.biases": ("F16", [3, 2], biases.tobytes())})
    (folder / "config.json").write_text(json.dumps({"quantization": {"bits": 4, "group_size": 32}}))
    codes = (words[:, :, None] >> np.arange(0, 32, 4, dtype="u4") & 15).reshape(3, 2, 32)
    products = codes.astype("f4") * scales.astype("f4")[:, :, None]
    return (products + biases.astype("f4")[:, :, None]).reshape(3, 64)


@pytest.mark.parametrize("name", ["", "model.safetensors"])
def test_settings_beside_the_model_count(tmp_path, name):
    want = mlx(tmp_path / "m")
    with heft.open(tmp_path / "m" / name, logical="f32") as f:
        assert list(f) == ["w.weight"] and f["w.weight"].quantised["bits"] == 4
        assert np.array_equal(f["w.weight"].numpy(), want)


def test_what_is_not_quantised_stays(tmp_path, values):
    del values
    write_safetensors(tmp_path / "plain.safetensors", {"w": ("F32", [2], bytes(8))})
    with heft.open("plain.safetensors", logical=True) as f:
        assert f["w"].numpy().tolist() == [0, 0] and f["w"].quantised is None
    names = {"l.trellis": ("I16", [2, 2, 8], bytes(64)), "l.suh": ("F16", [16], bytes(32)),
             "l.svh": ("F16", [16], bytes(32))}
    write_safetensors(tmp_path / "exl3.safetensors", names)
    with heft.open("exl3.safetensors", logical=True) as f:
        assert set(f) == set(names) and f["l.trellis"].quantised is None


def test_a_lost_scale_is_an_error(tmp_path):
    write_safetensors(tmp_path / "m.safetensors", {
        "a.weight": ("F8_E4M3", [2, 2], bytes(4)), "b.weight": ("F8_E4M3", [2, 2], bytes(4)),
        "a.weight_scale_inv": ("F32", [1, 1], bytes(4))})
    with pytest.raises(heft.FormatError, match="b.weight"):
        heft.open(tmp_path / "m.safetensors", logical=True)


def test_checksums_of_parts_are_compared(values):
    heft.convert(FP8, "m.zt", digest="sha256", format_version="1.2")
    with heft.open("m.zt") as f:
        offset = f["b.weight"].parts[0]["offset"]
    data = bytearray(pathlib.Path("m.zt").read_bytes())
    data[offset] ^= 1
    pathlib.Path("m.zt").write_bytes(data)
    with heft.open("m.zt", logical="f32") as f:
        tensor = f["b.weight"]
        for read in (tensor.numpy, lambda: tensor.read_into(bytearray(tensor.nbytes)),
                     lambda: tensor.read_part("data"), tensor.__dlpack__):
            with pytest.raises(heft.ChecksumError) as caught:
                read()
            assert caught.value.tensor == "b.weight"
        assert np.array_equal(f["a.weight"].numpy().reshape(-1), values["a.weight"])
        assert np.array_equal(tensor[5], values["b.weight"].reshape(130, 140)[5])
    with pytest.raises(heft.ChecksumError):
        heft.load("m.zt", logical="f32")
    with heft.open("m.zt", logical="f32", verify=False) as f:
        assert (f["b.weight"].numpy().reshape(-1) != values["b.weight"]).sum() == 1


def test_wrong_arguments(values):
    del values
    for wrong in ({"logical": "i8"}, {"logical": ""}, {"logical": True, "raw_tensors": True}):
        with pytest.raises(heft.ArgumentError):
            heft.open(FP8, **wrong)
    with pytest.raises(heft.IOError):
        heft.open("missing.safetensors", logical=True)
    with pytest.raises(heft.Error):
        heft.open("hub:none/none", logical=True)
    assert len(heft.open(FP8, logical=False)) == 5 and len(heft.open(FP8, logical=1)) == 3
