"""Numbers of quantised tensors: no conversion loses their scales without being told to."""
import pathlib
import random
import sys

import heft
import pytest

from command_files import write_safetensors

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "py"))
import gen_gguf  # pylint: disable=wrong-import-position
import ggml_blocks  # pylint: disable=wrong-import-position

np = pytest.importorskip("numpy")


@pytest.fixture
def fp8(tmp_path):
    path = tmp_path / "fp8.safetensors"
    write_safetensors(path, {
        "l.weight": ("F8_E4M3", [8, 8], bytes([0x38] * 64)),
        "l.weight_scale_inv": ("F32", [1, 1], np.float32(2).tobytes()),
        "plain.weight": ("F8_E4M3", [8, 8], bytes([0x38] * 64))
    })
    return path


def test_a_cast_is_refused(fp8):
    with heft.open(fp8) as f:
        for read in (lambda t: t.to("f32"), lambda t: t.read_into(bytearray(256), "f32")):
            with pytest.raises(heft.UnsupportedError, match="fp8, scaled by") as caught:
                read(f["l.weight"])
            assert caught.value.rule == "heft/quantised"
            assert caught.value.tensor == "l.weight"
        assert f["plain.weight"].to("f32").sum() == 64
        assert len(bytes(f["l.weight"])) == 64


def test_stored_numbers_can_be_insisted_on(fp8):
    with heft.open(fp8, raw_tensors=True) as f:
        assert f["l.weight"].to("f32").sum() == 64


def test_a_store_refuses_a_cast(fp8):
    with heft.ParamStore() as store:
        store.add(fp8)
        with pytest.raises(heft.UnsupportedError, match="fp8, scaled by"):
            store.acquire("l.weight", dtype="f32")
        with store.acquire("l.weight_scale_inv", dtype="f32") as scale:
            assert scale == 2


def test_info_names_the_convention(fp8):
    quantised, = heft.info(fp8).quantised
    assert (quantised.scheme, quantised.bits, quantised.tensors, quantised.parts) == ("fp8", 8, 1, 2)
    assert quantised.block == (0, 0) and quantised.variant is None


def test_every_block_type_becomes_numbers(tmp_path):
    path, rng = tmp_path / "blocks.gguf", random.Random(2)
    tensors = [(name, name, (2, elements), ggml_blocks.draw(name, 2 * elements, rng))
               for name, (_, elements, _) in ggml_blocks.BLOCKS.items()]
    path.write_bytes(gen_gguf.File(tensors).bytes())
    with heft.open(path) as f:
        for name, _, shape, raw in tensors:
            want = np.array(ggml_blocks.decode(name, raw), np.float32).reshape(shape)
            assert np.array_equal(f[name].to("f32"), want), name


def test_nvfp4_needs_the_scale_of_another_tensor(tmp_path):
    path, block = tmp_path / "nvfp4.gguf", bytes([0x38] * 4 + [0x22] * 32)
    path.write_bytes(gen_gguf.File([
        ("a.weight", "nvfp4", (1, 64), block), ("a.scale", "f32", (1,), np.float32(2).tobytes()),
        ("b.weight", "nvfp4", (1, 64), block)
    ]).bytes())
    with heft.open(path) as f:
        with pytest.raises(heft.UnsupportedError, match="scaled by 'a.scale'"):
            f["a.weight"].to("f32")
        assert f["b.weight"].to("f32").sum() == 64
    with heft.open(path, raw_tensors=True) as f:
        assert f["a.weight"].to("f32").sum() == 64


@pytest.mark.parametrize("how, dtype", [(True, "bf16"), ("f32", "f32")])
def test_a_model_is_decoded(tmp_path, how, dtype):
    path, out = tmp_path / "fp8.safetensors", tmp_path / "out.safetensors"
    write_safetensors(path, {
        "l.weight": ("F8_E4M3", [8, 8], bytes([0x38] * 64)),
        "l.weight_scale_inv": ("F32", [1, 1], np.float32(2).tobytes())
    })
    heft.convert(path, out, dequantize=how)
    with heft.open(out) as f:
        assert list(f) == ["l.weight"]
        assert f["l.weight"].dtype == dtype
        assert (f["l.weight"].to("f32") == 2).all()


def test_a_model_is_quantised(tmp_path):
    path, out = tmp_path / "plain.safetensors", tmp_path / "out" / "out.safetensors"
    out.parent.mkdir()
    write_safetensors(path, {
        "l.weight": ("F32", [2, 64], np.full((2, 64), 3, np.float32).tobytes()),
        "lm_head.weight": ("F32", [2, 64], bytes(512))
    })
    heft.convert(path, out, quantize="nvfp4")
    with heft.open(out) as f:
        assert set(f) == {"l.weight_packed", "l.weight_scale", "l.weight_global_scale",
                          "lm_head.weight"}
        assert bytes(f["l.weight_packed"]) == bytes([0x77] * 64)
    heft.convert(path, out, quantize=["int8", "lm_head*=int8"], force=True)
    with heft.open(out) as f:
        assert "lm_head.weight_packed" in f
    with pytest.raises(heft.Error, match="nvfp4"):
        heft.convert(path, out, quantize="fp9", force=True)
