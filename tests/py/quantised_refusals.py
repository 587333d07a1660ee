"""quantised_refusals.py - quantised models that cannot be decoded, and what the error must name.

A model has two good weights, in layers 0 and 1; parts of layer 1 are left out or replaced.  Where
nothing is, the settings contradict the weights, or name a layout that is not decoded."""
import collections
import json

import numpy as np

import quantised_models as build
from quantised_cases import (BNB, GROUPS, INT8, MODELOPT, NVFP4, awq, blocks, compressed, gptq,
                             method, mlx, packed)
from quantised_models import integers

# `weight` and `partner` are regular expressions: what a line of the error must name.
Refusal = collections.namedtuple("Refusal", "title names builder options settings left_out put"
                                 " weight partner")


def rng():
    return np.random.default_rng(1)


def rows(names, builder, options, settings, *changes):
    """Return refusals from (title, parts left out, parts put in their place, weight, partner)."""
    for title, left_out, put, weight, partner in changes:
        yield Refusal(title, names, builder, options, settings, left_out, put, weight, partner)


def any_scale(suffix):
    """A part that is missing is named, or called a scale."""
    return rf"({suffix}|\bscales?\b)"


def zeros(dtype, *shape):
    return build.Stored(dtype, np.zeros(shape, build.KINDS[dtype]))


def state(**values):
    return integers("U8", list(json.dumps({"quant_type": "nf4", "blocksize": 64,
                                           "dtype": "bfloat16", "shape": [4, 64],
                                           **values}).encode()))


WEIGHT, QWEIGHT, PACKED = r"\.weight", r"\.q?weight", r"\.weight(_packed)?"
SETTINGS = r"(\bbits\b|config\.json|scales|qzeros|weight_scale\w*|weight_shape)"
LARGE = 1 << 40

FP8 = [
    *rows("inverse", build.fp8, dict(shape=(256, 256), block=(128, 128)), blocks(128, 128),
          ("fp8 without a scale", [".weight_scale_inv"], {}, WEIGHT, any_scale("weight_scale_inv")),
          *[(f"fp8 with scales {list(shape)}", [],
             {".weight_scale_inv": zeros("F32", *shape)}, WEIGHT, r"\.weight_scale_inv")
            for shape in [(9, 9), (2, 3), (1, 2), (2, 1), (0, 0), (3, ), (2, 2, 1), (257, 1)]],
          ("fp8 with scales of integers", [], {".weight_scale_inv": zeros("I32", 2, 2)}, WEIGHT,
           any_scale("weight_scale_inv"))),
    *rows("inverse", build.fp8, dict(shape=(256, 256), block=(128, 128)), blocks(64, 64),
          ("fp8 with blocks of another size", [], {}, WEIGHT, r"\.weight_scale_inv")),
    *rows("scale", build.fp8, dict(shape=(8, 96), block=(32, ), scale="U8"),
          compressed("mxfp8-quantized", 8, "group", 32, kind="float"),
          ("mxfp8 without a scale", [".weight_scale"], {}, WEIGHT, any_scale("weight_scale")),
          ("mxfp8 with scales for other columns", [], {".weight_scale": zeros("U8", 8, 5)}, WEIGHT,
           r"\.weight_scale")),
]

FP4 = [
    *rows("gate_up", build.gpt_oss, dict(shape=(2, 6, 64)), method("mxfp4"),
          ("mxfp4 without scales", [".gate_up_proj_scales"], {}, r"\.gate_up_proj(_blocks)?",
           any_scale("gate_up_proj_scales")),
          *[(f"mxfp4 with scales {list(shape)}", [],
             {".gate_up_proj_scales": zeros("U8", *shape)}, r"\.gate_up_proj(_blocks)?",
             r"\.gate_up_proj_scales") for shape in [(2, 6, 3), (2, 5, 2), (1, 6, 2), (2, 6)]]),
    *rows("deepseek", build.mxfp4, dict(shape=(8, 64), scale="F8_E8M0", weight="I8"), blocks(
        128, 128),
          ("mxfp4 of DeepSeek without a scale", [".scale"], {}, WEIGHT, any_scale("scale")),
          ("mxfp4 of DeepSeek with a scale of another shape", [],
           {".scale": zeros("F8_E8M0", 8, 3)}, WEIGHT, r"\.scale")),
    *rows("modelopt", build.nvfp4, dict(shape=(8, 64), value=0x3F800000), MODELOPT["NVFP4"],
          ("nvfp4 without scales", [".weight_scale"], {}, WEIGHT, any_scale("weight_scale")),
          ("nvfp4 without a scale of the tensor", [".weight_scale_2"], {}, WEIGHT,
           any_scale(r"weight_scale(_2)?")),
          *[(f"nvfp4 with scales {list(shape)}", [], {".weight_scale": zeros("F8_E4M3", *shape)},
             WEIGHT, r"\.weight_scale") for shape in [(8, 5), (7, 4), (32, ), (128, 4)]],
          ("nvfp4 with several scales of the tensor", [], {".weight_scale_2": zeros("F32", 3)},
           WEIGHT, r"\.weight_scale_2"),
          ("nvfp4 with scales of other columns", [], {".pre_quant_scale": zeros("F32", 63)}, WEIGHT,
           r"\.pre_quant_scale"),
          ("nvfp4 with scales of columns that are integers", [],
           {".pre_quant_scale": zeros("I32", 64)}, WEIGHT, r"\.pre_quant_scale")),
    *rows("modelopt", build.nvfp4, dict(shape=(8, 64), value=0x3F800000, tiled=True),
          MODELOPT["NVFP4"],
          *[(f"nvfp4 with {count} scales in tiles", [],
             {".weight_scale": zeros("F8_E4M3", count)}, WEIGHT, r"\.weight_scale")
            for count in (511, 513, 1024)]),
    *rows("scale", build.fp8, dict(shape=(8, 96), scale="U8", tiled=True), {},
          *[(f"mxfp8 with {count} scales in tiles", [], {".weight_scale": zeros("U8", count)},
             WEIGHT, r"\.weight_scale") for count in (24, 511, 1024)]),
    *rows("packed_global", build.nvfp4, dict(shape=(8, 64), value=0x3F800000, global_shape=(1, )),
          NVFP4, ("nvfp4 of compressed-tensors without scales", [".weight_scale"], {}, PACKED,
                  any_scale("weight_scale")),
          ("nvfp4 of compressed-tensors with scales of another shape", [],
           {".weight_scale": zeros("F8_E4M3", 8, 3)}, PACKED, r"\.weight_scale")),
]

COMPRESSED = [
    *rows("scale", build.int_quantised, dict(shape=(6, 96), scale_shape=(6, 3), zero=True), GROUPS,
          ("int-quantized without scales", [".weight_scale"], {}, WEIGHT,
           any_scale("weight_scale")),
          ("int-quantized with scales of other rows", [], {".weight_scale": zeros("BF16", 5, 3)},
           WEIGHT, r"\.weight_scale"),
          ("int-quantized with groups that do not divide", [],
           {".weight_scale": zeros("BF16", 6, 7), ".weight_zero_point": zeros("I8", 6, 7)}, WEIGHT,
           r"\.weight_scale"),
          ("int-quantized with zero points of another shape", [],
           {".weight_zero_point": zeros("I8", 6, 2)}, WEIGHT, r"\.weight_zero_point")),
    *rows("packed", build.pack_quantised, dict(shape=(8, 64), bits=4, groups=2, zero=True,
                                               by_index=True),
          packed(4, 32, False, "group"),
          ("pack-quantized without scales", [".weight_scale"], {}, PACKED,
           any_scale("weight_scale")),
          *[(f"pack-quantized with scales {list(shape)}", [],
             {".weight_scale": zeros("BF16", *shape)}, PACKED, r"\.weight_scale")
            for shape in [(8, 3), (7, 2), (8, 0), (16, )]],
          *[(f"pack-quantized of shape {shape}", [], {".weight_shape": integers("I64", shape)},
             PACKED, r"\.weight_shape") for shape in [[8, 640], [9, 64], [8, 0], [8, -64], [8],
                                                      [LARGE, LARGE]]],
          ("pack-quantized with zero points of another shape", [],
           {".weight_zero_point": zeros("I32", 8, 2)}, PACKED, r"\.weight_zero_point"),
          *[(f"pack-quantized with the group {group}", [],
             {".weight_g_idx": integers("I32", [group] * 64)}, PACKED, r"\.weight_g_idx")
            for group in (2, 0x7FFFFFFF)],
          ("pack-quantized with too few group indices", [], {".weight_g_idx": zeros("I32", 63)},
           PACKED, r"\.weight_g_idx")),
    *rows("packed", build.pack_quantised, dict(shape=(8, 96), bits=4, groups=3), packed(4, 32),
          ("pack-quantized with groups that do not divide", [],
           {".weight_scale": zeros("BF16", 8, 7)}, PACKED, r"\.weight_scale")),
    *rows("packed", build.pack_quantised, dict(shape=(8, 64), bits=4), packed(8),
          ("pack-quantized with words of other bits", [], {}, PACKED, SETTINGS)),
    *rows("packed", build.pack_quantised, dict(shape=(8, 20), bits=3), packed(3),
          ("pack-quantized in 2 words of 3 bits, old or new", [], {}, PACKED, SETTINGS)),
]

WORDS = dict(shape=(32, 128), bits=4, groups=4)
GPTQ = [
    *rows("qweight", build.gptq, dict(by_index=True, **WORDS), gptq(4, 32, "gptq", True),
          ("gptq without scales", [".scales"], {}, QWEIGHT, any_scale("scales")),
          *[(f"gptq with scales {list(shape)}", [], {".scales": zeros("F16", *shape)}, QWEIGHT,
             r"\.(scales|qzeros)") for shape in [(4, 33), (3, 32), (0, 32), (128, )]],
          *[(f"gptq with zero points {list(shape)}", [], {".qzeros": zeros("I32", *shape)}, QWEIGHT,
             r"\.qzeros") for shape in [(3, 4), (4, 5), (4, 0)]],
          *[(f"gptq with the group {group}", [], {".g_idx": integers("I32", [group] * 128)},
             QWEIGHT, r"\.g_idx") for group in (4, 0x7FFFFFFF)],
          ("gptq with too few group indices", [], {".g_idx": zeros("I32", 127)}, QWEIGHT,
           r"\.g_idx")),
    *rows("qweight", build.gptq, WORDS, gptq(4, 32),
          ("gptq with groups that do not divide", [],
           {".scales": zeros("F16", 7, 32), ".qzeros": zeros("I32", 7, 4)}, QWEIGHT, r"\.scales")),
    *rows("qweight", build.gptq, WORDS, gptq(8, 32),
          ("gptq with words of other bits", [], {}, QWEIGHT, SETTINGS)),
    *[refusal for form in ("marlin", "gptq_p")
      for refusal in rows("qweight", build.gptq, WORDS, gptq(4, 32, form),
                          (f"gptq in the layout {form}", [], {}, QWEIGHT, form))],
    *rows("qweight", build.awq, dict(shape=(64, 96), groups=3), awq(32),
          ("awq without scales", [".scales"], {}, QWEIGHT, any_scale("scales")),
          *[(f"awq with scales {list(shape)}", [], {".scales": zeros("F16", *shape)}, QWEIGHT,
             r"\.(scales|qzeros)") for shape in [(3, 65), (2, 64), (0, 64)]],
          ("awq with zero points of another shape", [], {".qzeros": zeros("I32", 3, 7)}, QWEIGHT,
           r"\.qzeros"),
          ("awq with groups that do not divide", [],
           {".scales": zeros("F16", 7, 64), ".qzeros": zeros("I32", 7, 8)}, QWEIGHT, r"\.scales")),
    *rows("qweight", build.awq, dict(shape=(64, 96), groups=3), awq(32, bits=8),
          ("awq with words of other bits", [], {}, QWEIGHT, SETTINGS)),
    *[refusal for version in ("gemv", "gemv_fast", "marlin")
      for refusal in rows("qweight", build.awq, dict(shape=(64, 96), groups=3),
                          awq(32, version=version),
                          (f"awq in the layout {version}", [], {}, QWEIGHT, version))],
]

def comfy(**values):
    return integers("U8", list(json.dumps(values).encode()))


DESCRIBED = r"\.comfy_quant"
COMFYUI = [
    *rows("comfy", build.comfyui, dict(shape=(8, 64), form="int8_tensorwise"), {},
          ("ComfyUI without a scale", [".weight_scale"], {}, WEIGHT, any_scale("weight_scale")),
          *[(f"ComfyUI with scales {list(shape)}", [], {".weight_scale": zeros("F32", *shape)},
             WEIGHT, r"\.weight_scale") for shape in [(7, ), (8, 2), (0, ), (8, 64), (1, 64)]],
          ("ComfyUI with scales of integers", [], {".weight_scale": zeros("I32", 8, 1)}, WEIGHT,
           r"\.weight_scale"),
          ("ComfyUI with numbers of columns of another count", [],
           {".pre_quant_scale": zeros("F32", 8)}, WEIGHT, r"\.pre_quant_scale"),
          *[(f"ComfyUI described as {json.dumps(values)}", [], {".comfy_quant": comfy(**values)},
             WEIGHT, DESCRIBED) for values in [
                 {}, {"format": 1}, {"format": "nvfp4"}, {"format": "float8_e4m3fn"},
                 {"format": "int8_blockwise", "group_size": -1},
                 {"format": "int8_tensorwise", "convrot": True},
                 *[{"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": size}
                   for size in (0, 1, 8, 48, 128, 4096, 1 << 62)]]],
          *[(f"ComfyUI in the format {form}", [], {".comfy_quant": comfy(format=form)}, WEIGHT,
             form) for form in ("asym_w4a8_int8", "convrot_w4a4", "svdquant_w4a4", "new")],
          ("ComfyUI with a description that is no JSON", [],
           {".comfy_quant": integers("U8", list(b"{"))}, WEIGHT, DESCRIBED),
          ("ComfyUI with an empty description", [], {".comfy_quant": zeros("U8", 0)}, WEIGHT,
           DESCRIBED),
          ("ComfyUI with a long description", [], {".comfy_quant": zeros("U8", 5000)}, WEIGHT,
           DESCRIBED)),
    *rows("comfy", build.comfyui, dict(shape=(16, 64), form="nvfp4"), {},
          ("ComfyUI's nvfp4 without a scale of the tensor", [".weight_scale_2"], {}, WEIGHT,
           r"global_scale is missing"),
          *[(f"ComfyUI's nvfp4 with scales {list(shape)}", [],
             {".weight_scale": zeros("F8_E4M3", *shape)}, WEIGHT, r"\.weight_scale")
            for shape in [(16, 4), (128, 3), (256, 4), (0, )]]),
    *rows("scale", build.modelopt_int4, dict(shape=(8, 64), groups=2), MODELOPT["W4A16_AWQ"],
          ("int4 awq of ModelOpt without a scale", [".weight_scale"], {}, WEIGHT,
           any_scale("weight_scale")),
          *[(f"int4 awq of ModelOpt with scales {list(shape)}", [],
             {".weight_scale": zeros("BF16", *shape)}, WEIGHT, r"\.weight_scale")
            for shape in [(8, 3), (4, 2), (9, 2), (8, 0), (16, )]],
          ("int4 awq of ModelOpt in two steps", [], {".weight_scale_2": zeros("F32")}, WEIGHT,
           r"\.weight_scale_2")),
]

STATE = r"\.weight\.quant_state\.bitsandbytes__nf4"
OTHERS = [
    *rows("nf4", build.bitsandbytes, dict(shape=[4, 64], nested=True), BNB["nf4"],
          ("nf4 without absmax", [".weight.absmax"], {}, WEIGHT, r"(absmax|\bscales?\b)"),
          ("nf4 with too few scales", [], {".weight.absmax": zeros("U8", 3)}, WEIGHT,
           r"\.weight\.absmax"),
          ("nf4 with a short map", [], {".weight.quant_map": zeros("F32", 15)}, WEIGHT,
           r"\.weight\.quant_map"),
          ("nf4 with a short nested map", [], {".weight.nested_quant_map": zeros("F32", 255)},
           WEIGHT, r"\.weight\.nested_quant_map"),
          ("nf4 without nested scales", [".weight.nested_absmax"], {}, WEIGHT,
           r"\.weight\.(nested_)?absmax"),
          *[(f"nf4 with {json.dumps(values)}", [],
             {STATE.replace("\\", ""): state(**{"nested_blocksize": 256, "nested_offset": 0.5,
                                                **values})}, WEIGHT, STATE)
            for values in [{"shape": [5, 64]}, {"shape": [LARGE, LARGE]}, {"shape": [-4, -64]},
                           {"shape": "x"}, {"blocksize": 0}, {"blocksize": -64},
                           {"nested_blocksize": 0}]],
          ("nf4 with a description that is no JSON", [],
           {STATE.replace("\\", ""): integers("U8", list(b"{"))}, WEIGHT, STATE)),
    *rows("int8", build.int8, dict(shape=(8, 33)), INT8,
          ("int8 without SCB", [".SCB"], {}, WEIGHT, any_scale("SCB")),
          ("int8 with scales of other rows", [], {".SCB": zeros("F32", 33)}, WEIGHT, r"\.SCB"),
          ("int8 in another layout", [], {".weight_format": integers("U8", 2)}, WEIGHT,
           r"\.weight_format")),
    *rows("mlx", build.mlx_affine, dict(shape=(4, 128), bits=4, group=64), mlx(4, 64),
          ("mlx without scales", [".scales"], {}, WEIGHT, any_scale("scales")),
          *[(f"mlx with scales {list(shape)}", [], {".scales": zeros("BF16", *shape),
                                                    ".biases": zeros("BF16", *shape)}, WEIGHT,
             r"\.scales") for shape in [(4, 3), (5, 2), (4, 0)]],
          ("mlx with biases of another shape", [], {".biases": zeros("BF16", 4, 3)}, WEIGHT,
           r"\.biases")),
    *rows("mlx", build.mlx_affine, dict(shape=(4, 128), bits=4, group=64), mlx(8, 64),
          ("mlx with words of other bits", [], {}, WEIGHT, SETTINGS)),
    *rows("mlx", build.mlx_float, dict(shape=(4, 128), mode="mxfp4"), mlx(4, 16, "nvfp4"),
          ("mlx with groups of another mode", [], {}, WEIGHT, r"(mode|\bgroups?\b|scales)")),
    *rows("scale", build.bitnet, dict(shape=(8, 40)), method("bitnet"),
          ("bitnet without a scale", [".weight_scale"], {}, WEIGHT, any_scale("weight_scale"))),
]

NOT_DECODED = [ # the scheme, and the parts of layer 1
    ("marlin", {".B": zeros("I32", 8, 32), ".s": zeros("F16", 1, 32)}),
    ("sparse-24", {".weight_packed": zeros("I32", 8, 32), ".scale_packed": zeros("F16", 1, 32),
                   ".meta": zeros("I16", 8, 32)}),
    ("sparse-24", {".weight.compressed": zeros("BF16", 8, 4), ".weight.bitmask": zeros("U8", 8, 1),
                   ".weight.shape": integers("I64", [8, 8])}),
    ("aqlm", {".codes": zeros("I16", 8, 4, 1), ".codebooks": zeros("F16", 1, 16, 1, 8),
              ".scales": zeros("F16", 8, 1, 1, 1)}),
]
SCHEMES = [Refusal(f"{scheme}, by the names {' '.join(put)}", None, None, {}, {}, [], put,
                   "(" + "|".join([".weight", *map(str, put)]).replace(".", r"\.") + ")", scheme)
           for scheme, put in NOT_DECODED]

REFUSALS = [*FP8, *FP4, *COMFYUI, *COMPRESSED, *GPTQ, *OTHERS, *SCHEMES]
