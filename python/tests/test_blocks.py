"""Rows of block types: numpy's arithmetic, and the blocks of GGUF as other programs read them."""
import pathlib
import sys

import heft
import pytest

np = pytest.importorskip("numpy")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/py"))
import ggml_blocks  # noqa: E402

TYPES = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k",
         "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "tq1_0", "tq2_0", "q1_0", "q2_0")


def rows(shape=(3, 512), seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_are_decoded_as_their_description_says(dtype):
    values = rows()
    data = heft.quantize(values, dtype)
    decoded = heft.dequantize(data, dtype, values.shape)
    assert len(data) == values.size // ggml_blocks.BLOCKS[dtype][1] * ggml_blocks.BLOCKS[dtype][2]
    assert decoded.ravel().tolist() == ggml_blocks.decode(dtype, data)


@pytest.mark.parametrize("dtype,most", [("q8_0", 0.01), ("q6_k", 0.03), ("q5_k", 0.06),
                                        ("q4_k", 0.1), ("q3_k", 0.25), ("iq4_xs", 0.1)])
def test_errors_are_small(dtype, most):
    values = rows()
    decoded = heft.dequantize(heft.quantize(values, dtype), dtype, values.shape)
    assert np.sqrt(np.mean((decoded - values)**2)) < most


def test_q8_0_is_what_numpy_computes():
    values = rows((4, 64))
    blocks = values.reshape(-1, 32)
    scale = (np.abs(blocks).max(axis=1) / np.float32(127)).astype(np.float32)
    scaled = blocks * (np.float32(1) / scale)[:, None]
    codes = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
    expected = np.concatenate([scale.astype("<f2").view(np.uint8).reshape(-1, 2),
                               codes.view(np.uint8)], axis=1)
    assert heft.quantize(values, "q8_0") == expected.tobytes()


def test_importance_lowers_the_error_where_it_counts():
    values, importance = rows(), np.full(512, 0.01, np.float32)
    importance[::16] = 100
    plain, weighted = (heft.dequantize(heft.quantize(values, "q4_k", i), "q4_k", values.shape)
                       for i in (None, importance))
    assert np.abs(weighted - values)[:, ::16].mean() < np.abs(plain - values)[:, ::16].mean()


def test_other_numbers_are_converted_first():
    values = rows().astype(np.float16)
    assert heft.quantize(values, "q4_0") == heft.quantize(values.astype(np.float32), "q4_0")
    assert heft.quantize(values.T.copy().T, "q4_0") == heft.quantize(values, "q4_0")


def test_what_does_not_fit_is_refused():
    with pytest.raises(heft.ArgumentError, match="100 columns do not fill blocks of q8_0"):
        heft.quantize(np.zeros((2, 100)), "q8_0")
    with pytest.raises(heft.UnsupportedError, match="iq2_xs, which has codes"):
        heft.quantize(rows(), "iq2_xs")
    with pytest.raises(heft.NotFoundError):
        heft.quantize(rows(), "q9")
    with pytest.raises(heft.ArgumentError, match="as many rows or columns"):
        heft.quantize(rows(), "q4_k", np.ones(256))
    with pytest.raises(heft.ArgumentError, match="importance of column 3"):
        heft.quantize(rows(), "q4_k", np.where(np.arange(512) == 3, -1, 1))
    with pytest.raises(ValueError, match="take 288 bytes, and there are 287"):
        heft.dequantize(bytes(287), "q4_k", (1, 512))
    with pytest.raises(ValueError, match="no columns"):
        heft.dequantize(b"", "q8_0", ())


def test_nothing_has_no_bytes():
    assert heft.quantize(np.zeros((0, 256)), "q4_k") == b""
    assert heft.dequantize(b"", "q4_k", (0, 256)).shape == (0, 256)
