"""quantised_cases.py - quantised models that are decoded, and models that must be refused.

A weight has a convention of names, a builder of its parts, a decoder, and options of both."""
import collections
import json

import quantised_decoders as decode
import quantised_models as build

Weight = collections.namedtuple("Weight", "names builder decoder options")
# `kept` has further tensors, neither parts of a weight nor changed: the type and shape by name.
Case = collections.namedtuple("Case", "title schemes weights settings kept", defaults=[{}])


def weights(names, builder, decoder, *options):
    return [Weight(names, builder, decoder, o) for o in options]


def module_of(names, i):
    """Return the name of the module of weight i."""
    return {"stacked": f"model.layers.{i}.mlp.experts", "gate_up": f"model.layers.{i}.mlp.experts",
            "down": f"model.layers.{i}.mlp.experts", "openai": f"block.{i}.mlp"
            }.get(names, f"model.layers.{i}.proj")


def stored_names(weight, i):
    """Return the name of the quantised tensor, and of its parts by role."""
    logical, suffixes = build.NAMES[weight.names]
    module = module_of(weight.names, i)
    return module + logical, {role: module + s for role, s in suffixes.items()}


# ---- settings ---------------------------------------------------------------------------------


def method(name, **rest):
    return {"config.json": {"model_type": "llama",
                            "quantization_config": {"quant_method": name, **rest}}}


def blocks(*size, **rest):
    return method("fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=size, **rest)


def compressed(form, bits, strategy, group=None, symmetric=True, kind="int", **rest):
    return method("compressed-tensors", format=form, quantization_status="compressed",
                  ignore=["lm_head"], config_groups={"group_0": {
                      "targets": ["Linear"], "weights": {
                          "num_bits": bits, "type": kind, "symmetric": symmetric,
                          "strategy": strategy, "group_size": group, **rest}}})


def packed(bits, group=None, symmetric=True, actorder=None):
    return compressed("pack-quantized", bits, "group" if group else "channel", group, symmetric,
                      actorder=actorder)


def gptq(bits, group, form="gptq", indexed=False):
    return method("gptq", bits=bits, group_size=group, desc_act=indexed, sym=False,
                  checkpoint_format=form)


def awq(group, **rest):
    return method("awq", **{"bits": 4, "group_size": group, "zero_point": True, "version": "gemm",
                            **rest})


def mlx(bits, group, mode="affine", **overrides):
    sizes = {"group_size": group, "bits": bits, "mode": mode, **overrides}
    return {"config.json": {"quantization": sizes, "quantization_config": sizes}}


BNB = {kind: method("bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type=kind,
                    bnb_4bit_compute_dtype="bfloat16") for kind in ("nf4", "fp4")}
INT8 = method("bitsandbytes", load_in_8bit=True)
MODELOPT = {algorithm: {"hf_quant_config.json": {
    "producer": {"name": "modelopt"}, "quantization": {
        "quant_algo": algorithm, "group_size": 16, "exclude_modules": ["lm_head"]}}}
    for algorithm in ("FP8", "NVFP4", "W4A16_AWQ")}
GROUPS, CHANNELS = (compressed("int-quantized", 8, *strategy)
                    for strategy in (("group", 32), ("channel", )))
NVFP4 = compressed("nvfp4-pack-quantized", 4, "tensor_group", 16, kind="float")

# An ordinary number, zero, the least and the largest number, infinity, NaN, and 6 * 448
GLOBALS = [0x3C23D70B, 0, 1, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x45280000]

# ---- models that are decoded ------------------------------------------------------------------

WITH_SCALE = [ # convention, shapes of weight and scale
    ("scale", (6, 10), ()), ("scale", (6, 10), (1, )), ("scale", (6, 10), (6, 1)),
    ("scale", (6, 10), (6, )), ("scale", (40, 1), (40, 1)), ("scale", (1, 40), (1, 1)),
    ("inverse", (6, 10), ()), ("inverse", (60, 10), (60, 1)), ("stacked", (3, 6, 10), (3, 6, 1)),
    ("stacked", (3, 6, 10), (3, 1, 1))]

FP8 = [
    Case("fp8, blocks of 128x128", {"fp8"}, weights(
        "inverse", build.fp8, decode.fp8, *[
            dict(shape=shape, block=(128, 128), scale=scale)
            for shape in ((256, 384), (200, 130), (129, 1), (1, 300), (5, 7))
            for scale in ("F32", "F16", "BF16", "F8_E8M0")]), blocks(128, 128)),
    Case("fp8, blocks without settings", {"fp8"}, weights(
        "inverse", build.fp8, decode.fp8, dict(shape=(300, 260), block=(128, 128))), {}),
    Case("fp8, blocks of ModelOpt", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, *[
            dict(shape=shape, block=(128, 128), spread=True, scale=scale)
            for shape in ((256, 384), (200, 130), (5, 7)) for scale in ("F32", "BF16")]),
        {"hf_quant_config.json": {"producer": {"name": "modelopt"}, "quantization": {
            "quant_algo": "FP8_PB_WO", "kv_cache_quant_algo": None,
            "exclude_modules": ["lm_head"]}}}),
    Case("fp8, blocks of other sizes", {"fp8"}, weights(
        "inverse", build.fp8, decode.fp8, dict(shape=(10, 23), block=(4, 8)),
        dict(shape=(9, 15), block=(4, 8), scale="BF16")), blocks(4, 8)),
    Case("fp8, stacks of blocks", {"fp8"}, weights(
        "stacked", build.fp8, decode.fp8, *[
            dict(shape=(3, 130, 257), block=(128, 128), scale=scale)
            for scale in ("F32", "BF16", "F8_E8M0")]), blocks(128, 128)),
    Case("fp8, e5m2", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, dict(shape=(33, 9), scale_shape=(33, 1), weight="F8_E5M2"),
        dict(shape=(33, 9), weight="F8_E5M2", scale="BF16")), method("fp8")),
    *[Case(f"fp8 ({names}) {list(shape)} with scales {list(scale_shape)}", {"fp8"}, weights(
        names, build.fp8, decode.fp8, *[
            dict(shape=shape, scale_shape=scale_shape, scale=scale)
            for scale in ("F32", "F16", "BF16")]), method("fp8"))
      for names, shape, scale_shape in WITH_SCALE],
    Case("fp8, special scales of tensors", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, *[
            dict(shape=(16, 20), value=value) for value in GLOBALS + [0x80000000, 0xC0000000]]),
        method("fp8")),
    Case("fp8, groups of compressed-tensors", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, dict(shape=(6, 64), block=(16, ), scale="BF16")),
        compressed("float-quantized", 8, "group", 16, kind="float")),
    Case("fp8, blocks of compressed-tensors", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, dict(shape=(130, 140), block=(128, 128), scale="BF16")),
        compressed("float-quantized", 8, "block", kind="float", block_structure=[128, 128])),
    Case("fp8 of ModelOpt", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, dict(shape=(6, 10)), dict(shape=(1, 9))), MODELOPT["FP8"],
        {"model.layers.0.attn.k_proj.k_scale": ("F32", ()),
         "model.layers.0.attn.v_proj.v_scale": ("F32", ())}),
    Case("fp8 of ModelOpt, scales of columns", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, dict(shape=(6, 10), columns="F32"),
        dict(shape=(3, 2049), scale_shape=(3, 1), columns="BF16")), MODELOPT["FP8"]),
    Case("fp8, fnuz", {"fp8"}, weights(
        "scale", build.fp8, decode.fp8, *[
            dict(shape=(33, 9), scale_shape=(33, 1), weight=weight, scale=scale)
            for weight in ("F8_E4M3FNUZ", "F8_E5M2FNUZ") for scale in ("F32", "BF16")]),
        method("fp8")),
    Case("fp8 of Mistral", {"fp8"}, weights(
        "mistral", build.fp8, decode.fp8, dict(shape=(6, 50), scale="BF16"), dict(shape=(6, 50))),
        method("fp8")),
    Case("fp8, a module that is not converted", {"fp8"}, weights(
        "inverse", build.fp8, decode.fp8, dict(shape=(130, 20), block=(128, 128))),
        blocks(128, 128, modules_to_not_convert=["lm_head"]),
        {"lm_head.weight": ("F8_E4M3", (4, 6))}),
    Case("fp8 of ComfyUI", {"fp8"}, weights(
        "comfyui", build.fp8, decode.fp8, dict(shape=(6, 50)), dict(shape=(6, 5), weight="F8_E5M2"),
        dict(shape=(6, 50), scale_shape=(1, ), scale="BF16")), {}),
]

MX = [
    *[Case(f"mxfp8 ({names}), scales of type {scale}", {"mxfp8"}, weights(
        names, build.fp8, decode.mxfp8, *[
            dict(shape=shape, block=(32, ), scale=scale, weight=weight)
            for shape in shapes for weight in ("F8_E4M3", "F8_E5M2")]), settings)
      for names, scale, shapes, settings in [
          ("scale", "U8", ((8, 96), (1, 32), (2, 3, 64)),
           compressed("mxfp8-quantized", 8, "group", 32, kind="float")),
          ("scale", "F8_E8M0", ((8, 96), (70, 64)), {}),
          ("inverse", "U8", ((8, 96), ), {})]],
    Case("mxfp4 of gpt-oss", {"mxfp4"}, weights(
        "gate_up", build.gpt_oss, decode.gpt_oss, dict(shape=(3, 10, 64)), dict(shape=(1, 2, 32)))
        + weights("down", build.gpt_oss, decode.gpt_oss, dict(shape=(3, 7, 96))),
        method("mxfp4", modules_to_not_convert=["model.embed_tokens"]),
        {"model.layers.0.mlp.experts.gate_up_proj_bias": ("BF16", (3, 10))}),
    Case("mxfp4 with the names of OpenAI", {"mxfp4"}, weights(
        "openai", build.gpt_oss, decode.gpt_oss, dict(shape=(3, 10, 64), transposed=False)), {}),
    Case("mxfp4 of compressed-tensors", {"mxfp4"}, weights(
        "packed", build.mxfp4, decode.mxfp4, dict(shape=(9, 64)), dict(shape=(1, 32)),
        dict(shape=(2, 3, 96))), compressed("mxfp4-pack-quantized", 4, "group", 32, kind="float")),
    Case("mxfp4 of Quark", {"mxfp4"}, weights(
        "scale", build.mxfp4, decode.mxfp4, dict(shape=(9, 64)), dict(shape=(1, 32)),
        dict(shape=(2, 3, 96))), method("quark", export={"pack_method": "reorder"},
                                         global_quant_config={"weight": {
                                             "dtype": "fp4", "qscheme": "per_group",
                                             "group_size": 32, "scale_format": "e8m0"}})),
    Case("mxfp4 of DeepSeek, with fp8", {"mxfp4", "fp8"}, weights(
        "deepseek", build.mxfp4, decode.mxfp4, *[
            dict(shape=shape, scale="F8_E8M0", weight="I8") for shape in ((8, 96), (1, 32))])
        + weights("deepseek", build.fp8, decode.fp8, *[
            dict(shape=shape, block=(128, 128), scale="F8_E8M0")
            for shape in ((200, 260), (130, 1))]), blocks(128, 128, scale_fmt="ue8m0")),
    *[Case(f"nvfp4 of {title}", {"nvfp4"}, weights(
        names, build.nvfp4, decode.nvfp4, *[
            dict(shape=shape, value=value, global_shape=global_shape, is_reciprocal=is_reciprocal)
            for value in GLOBALS for shape in ((20, 48), (1, 16))]), settings)
      for title, names, global_shape, is_reciprocal, settings in [
          ("ModelOpt", "modelopt", (), False, MODELOPT["NVFP4"]),
          ("ModelOpt, global scale [1]", "modelopt", (1, ), False, {}),
          ("compressed-tensors", "packed_global", (1, ), True, NVFP4)]],
]

TILES = [ # scales of 8 bits as tensor cores read them
    Case("mxfp8 in tiles", {"mxfp8"}, weights(
        "scale", build.fp8, decode.mxfp8, *[
            dict(shape=shape, scale="U8", tiled=True)
            for shape in ((8, 96), (130, 288), (256, 128), (2, 130, 64))]), {}),
    Case("nvfp4 of TensorRT-LLM, in tiles", {"nvfp4"}, weights(
        "modelopt", build.nvfp4, decode.nvfp4, *[
            dict(shape=shape, value=0x3C23D70B, tiled=True)
            for shape in ((8, 64), (130, 144), (256, 1088), (128, 64), (2, 130, 80))]),
        MODELOPT["NVFP4"]),
    Case("nvfp4 of ModelOpt, scales of columns", {"nvfp4"}, weights(
        "modelopt", build.nvfp4, decode.nvfp4, *[
            dict(shape=(20, 48), value=0x3C23D70B, columns=columns)
            for columns in ("F32", "BF16", "F16")]), MODELOPT["NVFP4"]),
    Case("int4 awq of ModelOpt", {"modelopt"}, weights(
        "scale", build.modelopt_int4, decode.modelopt_int4, *[
            dict(shape=shape, groups=groups, scale=scale, columns=columns)
            for shape, groups in (((8, 64), 2), ((2, 1), 1), ((6, 1100), 1), ((2, 4, 64), 4))
            for scale, columns in (("BF16", None), ("F16", "F16"), ("F32", "BF16"))]),
        MODELOPT["W4A16_AWQ"]),
    *[Case(f"ComfyUI {form}{title}", {"comfyui"}, weights(
        "comfy", build.comfyui, decode.comfyui, *[
            dict(form=form, **options) for options in all_options]), {})
      for form, title, all_options in [
          *[(form, "", [dict(shape=(6, 10)), dict(shape=(6, 10), scale_shape=(1, )),
                        dict(shape=(6, 10), scale_shape=(6, 1), columns="F32"),
                        dict(shape=(6, 1300), scale_shape=(6, ), storage=storage)])
            for form, storage in (("float8_e4m3fn", "U8"), ("float8_e5m2", "U8"),
                                  ("int8_tensorwise", "I8"))],
          ("int8_blockwise", "", [dict(shape=(256, 384), block=128),
                                  dict(shape=(10, 23), block=8)]),
          ("mxfp8", "", [dict(shape=(32, 96), scale=scale) for scale in ("U8", "F8_E8M0")]
           + [dict(shape=(288, 160)), dict(shape=(128, 128), columns="F32")]),
          ("nvfp4", "", [dict(shape=(16, 48)), dict(shape=(144, 272), scale="U8"),
                         dict(shape=(128, 64), full_precision_matrix_mult=True),
                         dict(shape=(32, 2064), columns="BF16")]),
          # Sums of these numbers are exact in any order.
          ("int8_tensorwise", ", rotated", [
              dict(shape=(5, columns), scale_shape=(5, 1), value=0x3F000000, convrot=True,
                   convrot_groupsize=size)
              for columns, size in ((64, 16), (1024, 256), (2048, 1024), (12, 4))]
           + [dict(shape=(3, 512), scale_shape=(3, 1), value=0x3F000000, convrot=True)])]],
]

INTEGERS = [
    *[Case(f"int-quantized, {title}{', zero points' if zero else ''}", {"compressed-tensors"},
           weights("scale", build.int_quantised, decode.int_quantised, *[
               dict(shape=shape, scale_shape=scale_shape, scale=scale, zero=zero)
               for shape, scale_shape in shapes for scale in ("BF16", "F16", "F32")]), settings)
      for zero in (False, True) for title, shapes, settings in [
          ("channels", [((16, 33), (16, 1)), ((40, 1), (40, 1)), ((1, 40), (1, 1))], CHANNELS),
          ("one scale", [((6, 50), (1, ))], compressed("int-quantized", 8, "tensor")),
          ("groups of 32", [((6, 96), (6, 3))], GROUPS)]],
    *[Case(f"pack-quantized, {bits} bits{title}", {"compressed-tensors"}, weights(
        "packed", build.pack_quantised, decode.pack_quantised, *[
            dict(shape=shape, bits=bits, groups=shape[-1] // group if group else 1, scale=scale,
                 **options) for scale in ("BF16", "F16", "F32")]),
        packed(bits, group, "zero" not in options,
               "group" if "by_index" in options else None))
      for bits, title, shape, group, options in [
          *[(bits, ", groups", (7, 128), 32, {}) for bits in (2, 4, 8)],
          *[(bits, ", groups, zero points", (7, 128), 32, dict(zero=True)) for bits in (2, 4, 8)],
          *[(bits, ", group indices, zero points", (13, 64), 16, dict(zero=True, by_index=True))
            for bits in (4, 8)],
          (4, ", channels of 37", (9, 37), None, {}),
          (4, ", channels of 37, zero points", (9, 37), None, dict(zero=True)),
          (8, ", channels of 1", (9, 1), None, dict(zero=True)),
          (4, ", one row", (1, 64), 32, dict(zero=True)),
          (4, ", a stack", (3, 9, 64), 32, {}),
          (4, ", a stack, zero points", (3, 9, 64), 32, dict(zero=True)),
          (3, ", dense", (40, 128), 32, {}),
          (3, ", dense, zero points", (40, 128), 32, dict(zero=True)),
          (3, ", whole words", (40, 128), 32, dict(old=True)),
          (3, ", whole words, zero points", (40, 128), 32, dict(old=True, zero=True)),
          *[(bits, ", dense", (40, 128), 64, dict(zero=True)) for bits in (5, 6, 7)]]],
    *[Case(f"{form}, {bits} bits{title}", {"gptq"}, weights(
        "qweight", build.gptq, decode.gptq, *[
            dict(shape=shape, bits=bits, groups=-(-shape[1] // group) if group > 0 else 1,
                 scale=scale, is_v2=form == "gptq_v2", **options)
            for scale in ("F16", "BF16")]), gptq(bits, group, form, "by_index" in options))
      for form in ("gptq", "gptq_v2") for bits, title, shape, group, options in [
          *[(bits, "", (32, 128), 32, {}) for bits in (2, 3, 4, 8)],
          *[(bits, ", group indices", (32, 96), 32, dict(by_index=True)) for bits in (2, 3, 4, 8)],
          *[(bits, ", largest zero points", (32, 64), 32, dict(zero_words=-1))
            for bits in (2, 3, 4, 8)],
          (4, ", one group", (16, 64), -1, {}), (8, ", small", (4, 4), -1, {}),
          (4, ", a partial group", (8, 96), 64, dict(by_index=True))]],
    Case("gptq with quantize_config.json", {"gptq"}, weights(
        "qweight", build.gptq, decode.gptq, dict(shape=(64, 64), bits=4, groups=2)),
        {"quantize_config.json": {"bits": 4, "group_size": 32, "desc_act": False, "sym": True}}),
    *[Case(f"awq, groups of {group}", {"awq"}, weights(
        "qweight", build.awq, decode.awq, *[
            dict(shape=shape, groups=shape[1] // group if group > 0 else 1, scale=scale)
            for shape in shapes for scale in ("F16", "BF16")]), awq(group))
      for group, shapes in [(32, ((64, 96), (8, 32))), (64, ((32, 128), )),
                            (-1, ((16, 24), (8, 1)))]],
    Case("awq with quant_config.json", {"awq"}, weights(
        "qweight", build.awq, decode.awq, dict(shape=(64, 64), groups=2)),
        {"quant_config.json": {"w_bit": 4, "q_group_size": 32, "zero_point": True,
                               "version": "GEMM"}}),
]

OTHERS = [
    *[Case(f"bitsandbytes {kind}{', nested' if nested else ''}", {"bitsandbytes"}, weights(
        kind, build.bitsandbytes, decode.bitsandbytes, *[
            dict(shape=shape, kind=kind, blocksize=size, nested=nested, storage=storage)
            for shape, size, storage in [
                ((6, 100), 64, "U8"), ((130, 130), 64, "U8"), ((1, 70), 64, "U8"),
                ((70, 1), 64, "U8"), ((40, 60), 128, "U8"), ((3, 5), 64, "U8"),
                ((16, 20), 64, "BF16"), ((16, 20), 64, "F32")]]), BNB[kind])
      for kind in ("nf4", "fp4") for nested in (False, True)],
    Case("bitsandbytes int8", {"bitsandbytes"}, weights(
        "int8", build.int8, decode.int8, *[
            dict(shape=shape) for shape in ((40, 33), (40, 1), (1, 40))]), INT8),
    *[Case(f"mlx, {bits} bits, groups of {group}", {"mlx"}, weights(
        "mlx", build.mlx_affine, decode.mlx_affine, *[
            dict(shape=shape, bits=bits, group=group, scale=scale)
            for shape in ((5, 256), (1, 128), (2, 3, 128)) for scale in ("BF16", "F16", "F32")]),
        mlx(bits, group))
      for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64, 128)],
    Case("mlx, sizes of modules", {"mlx"}, weights(
        "mlx", build.mlx_affine, decode.mlx_affine, dict(shape=(4, 128), bits=4, group=64),
        dict(shape=(4, 128), bits=8, group=32), dict(shape=(4, 128), bits=3, group=64)),
        mlx(4, 64, **{"model.layers.1.proj": {"group_size": 32, "bits": 8},
                      "model.layers.2.proj": {"group_size": 64, "bits": 3}, "lm_head": False})),
    *[Case(f"mlx, {mode}", {"mlx"}, weights(
        "mlx", build.mlx_float, decode.mlx_float, *[
            dict(shape=shape, mode=mode) for shape in ((9, 128), (1, 64), (2, 3, 64))]),
        mlx(8 if mode == "mxfp8" else 4, 16 if mode == "nvfp4" else 32, mode))
      for mode in ("mxfp4", "mxfp8", "nvfp4")],
    Case("mlx, nvfp4 with a scale of the tensor", {"mlx"}, weights( # 1/8 of 6 * 448
        "mlx", build.mlx_float, decode.mlx_float, dict(shape=(9, 64), mode="nvfp4",
                                                       value=0x43A80000)), mlx(4, 16, "nvfp4")),
    Case("bitnet", {"bitnet"}, weights(
        "scale", build.bitnet, decode.bitnet, *[
            dict(shape=shape, scale=scale) for shape in ((8, 40), (4, 1), (128, 5))
            for scale in ("BF16", "F16", "F32")]), method("bitnet")),
    Case("bitnet, special scales", {"bitnet"}, weights(
        "scale", build.bitnet, decode.bitnet, *[
            dict(shape=(8, 40), scale="F32", value=value) for value in GLOBALS]), method("bitnet")),
]

# ---- settings of modules ----------------------------------------------------------------------


def group(form, targets, **rest):
    return {"format": form, "targets": targets,
            "weights": {"symmetric": True, "type": "int", "strategy": "group", **rest}}


def metadata(**texts):
    return {build.METADATA: {key: json.dumps(text) for key, text in texts.items()}}


PACKED = dict(shape=(8, 64), scale="BF16")
MIXED = method("compressed-tensors", format="mixed-precision", config_groups={
    "group_0": group("pack-quantized", [r"re:model\.layers\.[0-2]\.(proj|up)$"], num_bits=3,
                     group_size=32),
    "group_1": group("pack-quantized", ["Linear"], num_bits=6, group_size=16),
    "group_2": group("nvfp4-pack-quantized", ["model.layers.4.proj"], num_bits=4, type="float",
                     strategy="tensor_group", group_size=16),
    "group_3": group("float-quantized", ["re:.*5.*"], num_bits=8, type="float",
                     strategy="block", block_structure="4x8"),
    "group_4": {"targets": "none"}}, ignore=["re:.*lm_head", "re:(?!mlp)visual.*", "Embedding"])
DYNAMIC = method("gptq", bits=4, group_size=32, dynamic={
    r"+:.*\.layers\.1\..*": {"bits": 8, "group_size": 64}, r"-:lm_head": {},
    r".*\.2\.": {"bits": 2}}, lm_head=True)
LAYERS = metadata(_quantization_metadata={"format_version": "1.0", "layers": {
    "layers.0.proj": {"format": "nvfp4"}, "layers.1.proj": {"format": "mxfp8"},
    "layers.2.proj": {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": 16},
    "layers.3.proj": {"format": "int8_blockwise", "group_size": 8},
    "model.layers.4.proj": {"format": "float8_e5m2"}}})
SETTINGS = [
    Case("compressed-tensors, groups of modules", {"compressed-tensors", "nvfp4", "fp8"}, [
        *weights("packed", build.pack_quantised, decode.pack_quantised,
                 *[dict(bits=3, groups=2, **PACKED)] * 3, dict(bits=6, groups=4, **PACKED)),
        *weights("packed_global", build.nvfp4, decode.nvfp4, dict(
            shape=(8, 64), value=0x3F800000, global_shape=(1, ), is_reciprocal=True)),
        *weights("scale", build.fp8, decode.fp8, dict(shape=(10, 23), block=(4, 8)))], MIXED,
        {"lm_head.weight": ("F8_E4M3", (4, 6)), "visual.patch.weight": ("F8_E4M3", (4, 6))}),
    *[Case(f"gptq_v2 in {where}", {"gptq"}, weights(
        "qweight", build.gptq, decode.gptq, dict(shape=(16, 64), bits=4, groups=2, is_v2=True)),
        settings) for where, settings in [
            ("text_config", {"config.json": {"text_config": {"quantization_config": {
                "quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}}}}),
            ("a nested config", {"config.json": {"thinker_config": {"text_config": {
                "quantization_config": {"quant_method": "gptq", "bits": 4,
                                        "checkpoint_format": "gptq_v2"}}}}}),
            ("metadata", metadata(quantization_config={
                "quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"})),
            ("a config in metadata", metadata(config={"quantization_config": {
                "quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}}))]],
    Case("gptq, dynamic", {"gptq"}, weights(
        "qweight", build.gptq, decode.gptq, dict(shape=(16, 128), bits=4, groups=4),
        dict(shape=(16, 128), bits=8, groups=2), dict(shape=(16, 128), bits=2, groups=4)), DYNAMIC,
        {"lm_head.weight": ("I8", (4, 6))}),
    Case("gptq, extra_config", {"gptq"}, weights(
        "qweight", build.gptq, decode.gptq, dict(shape=(16, 128), bits=4, groups=4),
        dict(shape=(16, 128), bits=8, groups=4)),
        method("auto-round", bits=4, group_size=32, packing_format="auto_round:auto_gptq",
               extra_config={"model.layers.1.proj": {"bits": 8}, ".*lm_head.*": {"bits": 16}}),
        {"lm_head.weight": ("I8", (4, 6))}),
    Case("ModelOpt, layers", {"fp8", "nvfp4", "mxfp8"}, [
        *weights("scale", build.fp8, decode.fp8, dict(shape=(6, 10))),
        *weights("modelopt", build.nvfp4, decode.nvfp4, dict(shape=(8, 64), value=0x3F800000)),
        *weights("scale", build.fp8, decode.mxfp8, dict(shape=(8, 96), block=(32, ), scale="U8"))],
        {"hf_quant_config.json": {"quantization": {
            "quant_algo": "MIXED_PRECISION", "exclude_modules": ["lm_h*", "*.visual*"],
            "quantized_layers": {"model.layers.0.proj": {"quant_algo": "FP8"},
                                 "model.layers.1*": {"quant_algo": "NVFP4", "group_size": 16},
                                 "model.layers.2.proj": {"quant_algo": "MXFP8"}}}}},
        {"lm_head.weight": ("F8_E4M3", (4, 6)), "m.visual.0.weight": ("U8", (4, 6))}),
    Case("mlx, modes of modules", {"mlx"}, [
        *weights("mlx", build.mlx_affine, decode.mlx_affine, dict(shape=(4, 128), bits=4, group=64),
                 dict(shape=(4, 128), bits=6, group=64)),
        *weights("mlx", build.mlx_float, decode.mlx_float, dict(shape=(4, 128), mode="mxfp4"),
                 dict(shape=(4, 128), mode="nvfp4"))],
        mlx(4, 64, **{"model.layers.1.proj": {"bits": 6},
                      "model.layers.2.proj": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
                      "model.layers.3.proj": {"group_size": 16, "bits": 4, "mode": "nvfp4"},
                      "lm_head": False}), {"lm_head.weight": ("U8", (4, 6))}),
    Case("ComfyUI, described in metadata", {"comfyui"}, weights(
        "comfy", build.comfyui, decode.comfyui, *[dict(in_metadata=True, **options) for options in [
            dict(form="nvfp4", shape=(144, 272)), dict(form="mxfp8", shape=(32, 96)),
            dict(form="int8_tensorwise", shape=(5, 64), scale_shape=(5, 1), value=0x3F000000,
                 convrot=True, convrot_groupsize=16),
            dict(form="int8_blockwise", shape=(10, 23), block=8),
            dict(form="float8_e5m2", shape=(6, 10))]]), LAYERS),
]

CASES = [*FP8, *MX, *TILES, *INTEGERS, *OTHERS, *SETTINGS]
