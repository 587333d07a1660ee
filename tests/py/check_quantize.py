#!/usr/bin/env python3
"""check_quantize.py HEFT: judge `heft convert --quantize` by the definitions of the schemes.

Weights with ordinary numbers and difficult ones are quantised by Heft, on one thread and several,
from one file and from shards, and compared with what NumPy encodes: to the bit. What Heft decodes
from the result is compared with what NumPy decodes. Copies between layouts are compared with the
bytes that they come from. TAP on stdout."""
import json
import pathlib
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import quantised_decoders as decode
import quantised_encoders as encode
import quantised_models as models
from quantised_decoders import Stored, numbers, rounded
from quantised_models import differ

PREFIX = "model.layers.0."
WEIGHTS = { # type and shape; the last has more columns than are encoded at once
    PREFIX + "self_attn.o_proj.weight": ("BF16", (96, 128)),
    PREFIX + "mlp.down_proj.weight": ("F16", (130, 384)),
    PREFIX + "mlp.experts.up_proj": ("F32", (3, 40, 256)),
    PREFIX + "linear_attn.out_proj.weight": ("BF16", (9, 2304))}
LEFT_ALONE = {
    "model.embed_tokens.weight": ("BF16", (50, 128)), "lm_head.weight": ("BF16", (50, 128)),
    PREFIX + "mlp.gate.weight": ("F32", (4, 128)), PREFIX + "input_layernorm.weight":
    ("F32", (128, )), PREFIX + "self_attn.o_proj.bias": ("F16", (96, )), "conv.weight":
    ("F32", (2, 2, 2, 32)), "model.position_ids": ("I64", (1, 4))}
CONFIG = {"architectures": ["LlamaForCausalLM"], "quantization_config": {"quant_method": "none"},
          "hidden_size": 128, "text_config": {"a": [1, {"b": 2}]}}
NESTED = {"quant_method": "none"} # anywhere in the configuration of the input


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


def seeded(text):
    return np.random.default_rng(zlib.crc32(text.encode()))


def weight(name, dtype, shape):
    """Return ordinary numbers, rows of zeros, outliers, ties, subnormal numbers and -0."""
    rng = seeded(name)
    x = rng.normal(0, 0.05, shape).astype(np.float32)
    flat = x.reshape(-1, shape[-1])
    flat[1, :] = 0
    flat[2, 5] = 40
    flat[3, :] = rng.integers(-24, 25, shape[-1]) / 4 # ties of E2M1, and of integers
    flat[4, :] *= np.float32(2.0**-120 if dtype != "F16" else 2.0**-14)
    flat[5, ::3] = -0.0
    flat[6, :] = rng.integers(-900, 901, shape[-1]) / 2 # ties of E4M3
    flat[7, :32] = 0
    flat[8, :] *= np.float32(2.0**100 if dtype != "F16" else 2.0**15)
    flat[0, :] = -65504 if dtype == "F16" else -255 * 2.0**120 # the least of F16 and of BF16
    return rounded(x, dtype)


def source():
    rng = seeded("left alone")
    stored = {name: weight(name, *of) for name, of in WEIGHTS.items()}
    return stored, {name: models.codes(rng, *of) for name, of in LEFT_ALONE.items()}


# ---- methods ----------------------------------------------------------------------------------

COMPRESSED = {"quant_method": "compressed-tensors", "quantization_status": "compressed"}


def pack_decoder(bits):
    return lambda parts: decode.pack_quantised(parts, bits=bits)


# Title, encoder and its options, decoder with the suffixes of its roles, some settings
METHODS = [
    ("fp8", encode.fp8, {"block": (128, 128)}, lambda p: decode.fp8(p, block=(128, 128)),
     {"weight": "", "scale": "_scale_inv"},
     {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}),
    ("fp8:64x48", encode.fp8, {"block": (64, 48)}, lambda p: decode.fp8(p, block=(64, 48)),
     {"weight": "", "scale": "_scale_inv"}, {"weight_block_size": [64, 48]}),
    ("fp8:1x128", encode.fp8, {"block": (1, 128)}, lambda p: decode.fp8(p, block=(1, 128)),
     {"weight": "", "scale": "_scale_inv"}, {"quant_method": "fp8", "weight_block_size": [1, 128]}),
    ("fp8:channel", encode.fp8, {"block": (1, 0)},
     lambda p: numbers(p["weight"]) * numbers(p["scale"]),
     {"weight": "", "scale": "_scale"}, {**COMPRESSED, "format": "float-quantized"}),
    ("mxfp8", encode.mxfp8, {}, decode.mxfp8, {"weight": "", "scale": "_scale"},
     {**COMPRESSED, "format": "mxfp8-quantized"}),
    ("mxfp4", encode.mxfp4, {}, decode.mxfp4, {"weight": "_packed", "scale": "_scale"},
     {**COMPRESSED, "format": "mxfp4-pack-quantized"}),
    ("nvfp4", encode.nvfp4, {}, lambda p: decode.nvfp4(p, is_reciprocal=True),
     {"weight": "_packed", "scale": "_scale", "global_scale": "_global_scale"},
     {**COMPRESSED, "format": "nvfp4-pack-quantized"}),
    ("nvfp4:modelopt", encode.modelopt, {}, decode.nvfp4,
     {"weight": "", "scale": "_scale", "global_scale": "_scale_2"}, {"quant_method": "modelopt"}),
    ("int4", encode.integers, {"bits": 4, "group": 128}, pack_decoder(4),
     {"weight": "_packed", "scale": "_scale", "shape": "_shape"},
     {**COMPRESSED, "format": "pack-quantized"}),
    ("int4:32", encode.integers, {"bits": 4, "group": 32}, pack_decoder(4),
     {"weight": "_packed", "scale": "_scale", "shape": "_shape"}, COMPRESSED),
    ("int4:channel", encode.integers, {"bits": 4, "group": 0}, pack_decoder(4),
     {"weight": "_packed", "scale": "_scale", "shape": "_shape"}, COMPRESSED),
    ("int8", encode.integers, {"bits": 8, "group": 0}, pack_decoder(8),
     {"weight": "_packed", "scale": "_scale", "shape": "_shape"}, COMPRESSED),
    ("int8:64", encode.integers, {"bits": 8, "group": 64}, pack_decoder(8),
     {"weight": "_packed", "scale": "_scale", "shape": "_shape"}, COMPRESSED),
]


def values_differ(got, want):
    """Yield tensors whose numbers differ; NaN equals NaN."""
    for name, x in want.items():
        y = numbers(got[name])
        same = (y.view(np.uint32) == x.astype(np.float32).view(np.uint32)) | (np.isnan(x) &
                                                                             np.isnan(y))
        if not same.all():
            at = tuple(np.argwhere(~same)[0])
            yield f"{name}: {np.count_nonzero(~same)} numbers differ, first {at}: {y[at]}, {x[at]}"


def with_nested(config):
    """Add settings of a quantisation inside of objects, where they are found, too, and keys that
    are something else."""
    inner = {"text_config": {"quantization_config": NESTED, "z": {}, "quantization": "lossy"}}
    return {**config, "thinker_config": inner, "compression_config": NESTED,
            "vision_config": {"quantization": NESTED}}


def without_nested(config):
    inner = {"text_config": {"z": {}, "quantization": "lossy"}}
    return {**config, "thinker_config": inner, "vision_config": {}}


def settings_differ(path, wanted):
    config = json.loads(path.read_text())
    method = config.pop("quantization_config")
    old = without_nested({k: v for k, v in CONFIG.items() if k != "quantization_config"})
    if config != old or list(config) != list(old):
        yield f"config.json has {config}, not {old}"
    if {k: method.get(k) for k in wanted} != wanted:
        yield f"quantization_config is {method}, not {wanted}"
    left = method.get("ignore", method.get("modules_to_not_convert"))
    if sorted(left) != ["lm_head", "model.embed_tokens", PREFIX + "mlp.gate"]:
        yield f"modules that are left alone: {left}"


def expected(weights, encoder, options, roles, decoder):
    """Return the stored tensors and the decoded numbers."""
    stored, decoded = {}, {}
    for name, tensor in weights.items():
        kind = tensor.dtype
        parts = encoder(numbers(tensor), kind=kind, **options)
        stored.update({name + suffix: part for suffix, part in parts.items()})
        decoded[name] = decoder({role: parts[suffix] for role, suffix in roles.items()})
    return stored, decoded


def check_method(row, scratch):
    method, encoder, options, decoder, roles, settings = row
    weights, others = source()
    wanted, decoded = expected(weights, encoder, options, roles, decoder)
    for name, second, threads in (("one", (), 1), ("two", tuple(weights)[1:3], 4)):
        models.write(scratch / name, {**others, **weights},
                     {"config.json": with_nested(CONFIG)}, second)
        out = scratch / (name + "-out") / "model.safetensors"
        out.parent.mkdir()
        p = heft("convert", "-j", threads, "--quantize", method, scratch / name, out)
        if p.returncode:
            yield f"{name}: ends with {p.returncode}: {p.stderr}"
            return
        yield from differ(models.unpack(out), {**others, **wanted})
        yield from settings_differ(out.parent / "config.json", settings)
    back = scratch / "back.safetensors"
    p = heft("convert", "--dequantize=f32", scratch / "one-out", back)
    if p.returncode:
        yield f"--dequantize ends with {p.returncode}: {p.stderr}"
    else:
        yield from values_differ(models.unpack(back), decoded)


# ---- metadata ---------------------------------------------------------------------------------


def check_metadata(_, scratch):
    """Metadata about the old quantisation are left out; all else is kept."""
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    weights, _ = source()
    name = PREFIX + "self_attn.o_proj.weight"
    values = numbers(weights[name])
    parts = encode.fp8(values, (128, 128))
    stored = {name + suffix: part for suffix, part in parts.items()}
    kept = {"format": "pt", "config.json": "{}", "a": "quantization"}
    metadata = {**kept, "quantization_config": json.dumps(settings), "quantization": "fp8",
                "_quantization_metadata": json.dumps({"layers": {}}),
                "config": json.dumps(with_nested({"quantization_config": settings}))}
    models.write(scratch / "in", stored, {models.METADATA: metadata})
    (scratch / "out").mkdir()
    for option in ("--dequantize", "--quantize=int8"):
        out = scratch / "out" / "m.safetensors"
        p = heft("convert", "-f", "--requantize", option, scratch / "in", out)
        got = {} if p.returncode else models.metadata_of(out)
        config = json.loads(got.pop("config", "{}"))
        if got != kept or config != without_nested({}):
            yield f"{option}: {p.stderr}{got}, config {config}"
        p = heft("convert", "-f", "--dequantize", out, scratch / "back.safetensors")
        if option != "--dequantize" and p.returncode:
            yield p.stderr


# ---- factors that tensors share ---------------------------------------------------------------


def check_joined(row, scratch):
    """q, k and v have one factor, and so have gate and up, and w1 and w3: also without ".weight",
    and where the source is quantised."""
    method, is_quantised = row
    names = [[f"a.{n}_proj.weight" for n in "qkv"], ["m.gate_proj.weight", "m.up_proj.weight"],
             ["experts.gate_proj", "experts.up_proj"], ["w1.weight", "w3.weight"],
             ["my_q_proj.weight"], ["w1"], ["b.k_proj.weight"]]
    values = {n: numbers(weight(n, "BF16", (16, 64))) for n in sum(names, [])}
    stored = {n: rounded(x, "BF16") for n, x in values.items()}
    if is_quantised:
        parts = {n: encode.integers(x, 8, 0, "BF16") for n, x in values.items()}
        stored = {n + s: part for n in parts for s, part in parts[n].items()}
        values = {n: decode.pack_quantised({"weight": p["_packed"], "scale": p["_scale"],
                                            "shape": p["_shape"]}, bits=8)
                  for n, p in parts.items()}
    models.write(scratch / "in", stored, {})
    (scratch / "out").mkdir()
    out = scratch / "out" / "m.safetensors"
    p = heft("convert", "--requantize", "--quantize", method, scratch / "in", out)
    if p.returncode:
        yield p.stderr
        return
    encoder = encode.modelopt if "modelopt" in method else encode.nvfp4
    wanted = {}
    for joined in names:
        most = max(encode.largest(values[n].reshape(-1)) for n in joined)
        for n in joined:
            parts = encoder(values[n], most=most)
            wanted.update({n + s: part for s, part in parts.items()})
    yield from differ(models.unpack(out), wanted)


# ---- layouts that are copied ------------------------------------------------------------------


def raw_bytes(path, name):
    args = [HEFT, "cat", "--raw-tensors", str(path), name]
    p = subprocess.run(args, capture_output=True, check=False)
    return p.stdout if not p.returncode else p.stderr


def quantize(folder, out, method):
    out.parent.mkdir(exist_ok=True)
    p = heft("convert", "--quantize", method, folder, out)
    return [f"{method} to {out.name}: ends with {p.returncode}: {p.stderr}"] if p.returncode else []


def finite_scales(scale):
    """Scales that GGUF has, too: no NaN."""
    return Stored(scale.dtype, np.minimum(scale.bits, 254))


def mxfp4_sources():
    """Yield the title of a layout, its stored tensors, and name, packed bytes and scales."""
    rng = seeded("mxfp4 to copy")
    for title, names, shape in (("gpt-oss", "gate_up", (2, 64, 128)),
                                ("DeepSeek", "deepseek", (96, 128)),
                                ("compressed-tensors", "packed", (40, 1088))):
        _, suffixes = models.NAMES[names]
        kind = {"weight": "I8", "scale": "F8_E8M0"} if names == "deepseek" else {}
        parts = models.gpt_oss(rng, shape) if names == "gate_up" else models.mxfp4(
            rng, shape, **kind)
        parts["scale"] = finite_scales(parts["scale"])
        stored = {"a.x" + suffixes[role]: part for role, part in parts.items()}
        packed = parts["weight"].bits.view(np.uint8).reshape(*shape[:-1], shape[-1] // 2)
        yield title, stored, "a.x" + models.NAMES[names][0], packed, parts["scale"].bits


def check_mxfp4_copies(_, scratch):
    for i, (title, stored, name, packed, scale) in enumerate(mxfp4_sources()):
        folder = scratch / f"in{i}"
        models.write(folder, stored, {})
        out = scratch / f"out{i}" / "m.safetensors"
        failed = quantize(folder, out, "mxfp4")
        want = {name + "_packed": Stored("U8", packed), name + "_scale": Stored("U8", scale)}
        yield from failed or (f"{title}: {x}" for x in differ(models.unpack(out), want))
        gguf = scratch / f"out{i}" / "m.gguf"
        failed = quantize(folder, gguf, "mxfp4:gguf")
        blocks = encode.gguf_blocks(decode.nibbles(packed), scale, 32, 1)
        if failed or raw_bytes(gguf, name) != blocks:
            yield failed or f"{title}: the blocks of GGUF differ"
            continue
        back = scratch / f"back{i}" / "m.safetensors"
        failed = quantize(gguf, back, "mxfp4:gpt-oss")
        want = {name + "_blocks": Stored("U8", encode.grouped(packed, 16)),
                name + "_scales": Stored("U8", scale)}
        yield from failed or (f"{title}, back: {x}" for x in differ(models.unpack(back), want))


def nvfp4_parts(factor):
    rng = seeded("nvfp4 to copy")
    parts = models.nvfp4(rng, (48, 1152), 0, (1, ))
    scale = Stored("F8_E4M3", np.minimum(parts["scale"].bits & 127, 126))
    return parts["weight"].bits, scale, encode.f32([factor])


def check_nvfp4_copies(_, scratch):
    """ModelOpt to compressed-tensors, GGUF and back: codes, scales, and the factor, which is a
    power of two, so that its reciprocal is exact."""
    packed, scale, factor = nvfp4_parts(2.0**-9)
    name, reciprocal = "a.x.weight", encode.f32([2.0**9])
    layouts = {
        "nvfp4:modelopt": {name: Stored("U8", packed), name + "_scale": scale,
                           name + "_scale_2": Stored("F32", factor.bits.reshape(()))},
        "nvfp4": {name + "_packed": Stored("U8", packed), name + "_scale": scale,
                  name + "_global_scale": reciprocal}}
    blocks = encode.gguf_blocks(decode.nibbles(packed), scale.bits, 16, 4)
    for start, stored in layouts.items():
        folder = scratch / start.replace(":", "-")
        models.write(folder, stored, {})
        values = decode.nvfp4({"weight": Stored("U8", packed), "scale": scale,
                               "global_scale": factor})
        for method, want in layouts.items():
            out = scratch / (folder.name + method.replace(":", "-")) / "m.safetensors"
            failed = quantize(folder, out, method)
            yield from failed or (f"{start}: {x}" for x in differ(models.unpack(out), want))
            decoded = out.parent / "d.safetensors"
            p = heft("convert", "--dequantize=f32", out, decoded)
            yield from [p.stderr] if p.returncode else values_differ(models.unpack(decoded),
                                                                     {name: values})
        gguf = scratch / (folder.name + "-gguf") / "m.gguf"
        failed = quantize(folder, gguf, "nvfp4:gguf")
        same = not failed and raw_bytes(gguf, name) == blocks and \
            raw_bytes(gguf, "a.x.scale") == factor.bits.tobytes()
        if not same:
            yield failed or f"{start}: the blocks of GGUF or the factor differ"
            continue
        out = scratch / (folder.name + "-back") / "m.safetensors"
        failed = quantize(gguf, out, start)
        yield from failed or (f"{start}, back: {x}" for x in differ(models.unpack(out), stored))


def not_copied():
    """Yield nvfp4 whose codes and scales mean something else in another layout: a title, the
    stored tensors by suffix, the numbers, and the methods that must not copy."""
    rng = seeded("nvfp4 that is not copied")
    packed, scale, factor = nvfp4_parts(2.0**-9)
    packed, scale = packed[:, :32], Stored(scale.dtype, scale.bits[:, :4] & 127)
    weight, both = Stored("U8", packed), ("nvfp4", "nvfp4:modelopt")
    plain = {"weight": weight, "scale": scale, "global_scale": factor}
    columns = Stored("F32", np.float32(rng.uniform(0.5, 2, 64)).view(np.uint32))
    rows = Stored("F8_E4M3", scale.bits[:, :1])
    wide = Stored("F8_E5M2", np.minimum(scale.bits, 0x5F))
    tiny = encode.f32([2.0**-130])
    for title, parts, methods in (
            ("scales of columns", {**plain, "columns": columns}, both),
            ("scales of rows", {**plain, "scale": rows}, both),
            ("scales of another type", {**plain, "scale": wide}, both),
            ("a factor without a reciprocal", {**plain, "global_scale": tiny}, both[:1])):
        suffixes = {**models.NAMES["modelopt"][1], "columns": ".pre_quant_scale"}
        stored = {"a.x" + suffixes[role]: part for role, part in parts.items()}
        if title == "scales of rows": # the shape tells what a scale belongs to
            x = decode.E2M1[decode.nibbles(packed)] * (numbers(rows) * numbers(factor))
        else:
            x = decode.nvfp4(parts)
        yield title, stored, x, methods


def check_no_copies(_, scratch):
    """Copies that would change the numbers are refused; --requantize encodes the numbers."""
    encoders = {"nvfp4": encode.nvfp4, "nvfp4:modelopt": encode.modelopt}
    for title, stored, values, methods in not_copied():
        folder = scratch / title.replace(" ", "-")
        models.write(folder, stored, {})
        for method in methods:
            out = scratch / (folder.name + method.replace(":", "-")) / "m.safetensors"
            out.parent.mkdir()
            p = heft("convert", "--quantize", method, folder, out)
            yield from (f"{title}: {x}" for x in refusal(
                5, ["quantised already", "--requantize"], p, out.parent))
            p = heft("convert", "--requantize", "-f", "--quantize", method, folder, out)
            want = {"a.x.weight" + s: part for s, part in encoders[method](
                values.astype(np.float32)).items()}
            yield from [p.stderr] if p.returncode else (
                f"{title}: {x}" for x in differ(models.unpack(out), want))


def check_gpt_oss(_, scratch):
    """Numbers as transformers keeps them, with rows and columns exchanged."""
    names = ["l.mlp.experts.gate_up_proj", "l.mlp.experts.down_proj"]
    weights = {n: weight(n, "BF16", (2, 128, 96)) for n in names}
    other = {"l.self_attn.q_proj.weight": weight("q", "BF16", (64, 64))}
    models.write(scratch / "in", {**weights, **other}, {})
    out = scratch / "out" / "m.safetensors"
    wanted = {n + s: part for n in names for s, part in encode.gpt_oss(
        numbers(weights[n])).items()}
    yield from quantize(scratch / "in", out, "mxfp4:gpt-oss") or differ(
        models.unpack(out), {**wanted, **other})


# ---- choices, and what is refused -------------------------------------------------------------


def check_globs(_, scratch):
    weights, others = source()
    others["lm_head.weight"] = weight("lm_head.weight", "BF16", (50, 128))
    models.write(scratch / "in", {**others, **weights}, {})
    (scratch / "out").mkdir()
    out = scratch / "out" / "m.safetensors"
    p = heft("convert", "--quantize", "lm_head*=fp8", "--quantize", "*experts*=none", "--quantize",
             "*layernorm*=none", "--quantize", "fp8", scratch / "in", out)
    chosen = {n: t for n, t in {**weights, **others}.items()
              if n in weights and "experts" not in n or n == "lm_head.weight"}
    wanted = {n: t for n, t in {**weights, **others}.items() if n not in chosen}
    for name, tensor in chosen.items():
        parts = encode.fp8(numbers(tensor), (128, 128))
        wanted.update({name + s: part for s, part in parts.items()})
    if p.returncode:
        yield p.stderr
        return
    yield from differ(models.unpack(out), wanted)
    method = json.loads((out.parent / "config.json").read_text())["quantization_config"]
    left = sorted(method["modules_to_not_convert"])
    if left != ["model.embed_tokens", PREFIX + "mlp.gate"]:
        yield f"modules that are left alone: {left}"


def refusal(code, stderr, p, out):
    if p.returncode != code:
        yield f"ends with {p.returncode}, not {code}: {p.stderr}"
    for text in stderr:
        if text not in p.stderr:
            yield f"{text!r} is not in {p.stderr!r}"
    if any(out.iterdir()):
        yield f"there is {[f.name for f in out.iterdir()]}"


def check_not_finite(value, scratch):
    weights, _ = source()
    name = PREFIX + "mlp.down_proj.weight"
    numbers_of = numbers(weights[name]).copy()
    numbers_of[100, 300] = value
    weights[name] = rounded(numbers_of, "F16")
    models.write(scratch / "in", weights, {})
    (scratch / "out").mkdir()
    out = scratch / "out" / "m.safetensors"
    for method in ("fp8", "fp8:channel", "mxfp8", "mxfp4", "nvfp4", "int4", "int8"):
        p = heft("convert", "--quantize", method, scratch / "in", out)
        yield from refusal(5, [name, str(100 * 384 + 300), "--allow-nan stores the nearest"], p,
                           scratch / "out")
    encoders = {"fp8": lambda x, kind: encode.fp8(x, (128, 128)), "nvfp4": lambda x, kind:
                encode.nvfp4(x), "int4": lambda x, kind: encode.integers(x, 4, 128, kind)}
    for method, encoder in encoders.items():
        p = heft("convert", "-f", "--allow-nan", "--quantize", method, scratch / "in", out)
        wanted = {n + s: part for n, t in weights.items()
                  for s, part in encoder(numbers(t), t.dtype).items()}
        yield from [p.stderr] if p.returncode else differ(models.unpack(out), wanted)


def check_refusals(_, scratch):
    weights, others = source()
    models.write(scratch / "in", {**others, **weights}, {"config.json": CONFIG})
    out = scratch / "out"
    out.mkdir()
    target = out / "m.safetensors"

    def run(*args, to=target, of="in"):
        return heft("convert", *args, scratch / of, to)

    p = run("--quantize", "fp9")
    yield from refusal(2, ["'fp9'", "fp8, mxfp8, mxfp4, nvfp4, int4, int8"], p, out)
    for method, text in (("fp8:tensor", "channel|ROWSxCOLUMNS"), ("mxfp8:32", "no options"),
                         ("int4:48", "'48'"), ("int4:0", "'0'"), ("fp8:128x", "'128x'"),
                         ("int8:8x8", "'8x8'"), ("mxfp4:modelopt", "'modelopt'")):
        yield from refusal(2, [text], run("--quantize", method), out)
    yield from refusal(2, ["one method"], run("--quantize", "fp8", "--quantize", "int4"), out)
    yield from refusal(2, ["no method"], run("--quantize", "none"), out)
    yield from refusal(2, ["--dequantize"], run("--quantize", "fp8", "--dequantize"), out)
    yield from refusal(5, ["no weight"], run("--quantize", "nothing*=fp8"), out)
    yield from refusal(2, ["folder of its own"],
                       run("--quantize", "fp8", to=scratch / "in" / "m.safetensors"), out)
    (out / "config.json").write_text("{}")
    p = run("--quantize", "fp8")
    if p.returncode != 2 or "config.json" not in p.stderr or target.exists():
        yield f"config.json is replaced: {p.stderr}"
    (out / "config.json").unlink()
    (scratch / "again").mkdir()
    p = heft("convert", "--quantize", "fp8", scratch / "in", scratch / "again" / "m.safetensors")
    yield from [p.stderr] if p.returncode else []
    yield from refusal(5, ["quantised already", "'fp8'", "--requantize"],
                       run("--quantize", "int4", of="again"), out)
    p = run("--quantize", "int4", "--requantize", of="again")
    name = PREFIX + "self_attn.o_proj.weight"
    parts = encode.fp8(numbers(weights[name]), (128, 128))
    values = decode.fp8({"weight": parts[""], "scale": parts["_scale_inv"]}, block=(128, 128))
    want = encode.integers(values, 4, 128, "BF16")
    if p.returncode:
        yield p.stderr
        return
    got = models.unpack(target)
    yield from differ({n: t for n, t in got.items() if n.startswith(name)},
                      {name + s: part for s, part in want.items()})


def run(check, row):
    with tempfile.TemporaryDirectory() as scratch:
        return list(check(row, pathlib.Path(scratch)))


def main():
    np.seterr(all="ignore") # infinite and subnormal numbers are wanted
    results = [(f"{row[0]}: bytes and numbers are those of NumPy", run(check_method, row))
               for row in METHODS]
    results += [(f"{m}: joined tensors share a factor{' after int8' * q}",
                 run(check_joined, (m, q)))
                for m in ("nvfp4", "nvfp4:modelopt") for q in (False, True)]
    results += [("mxfp4:gpt-oss: rows and columns are exchanged", run(check_gpt_oss, None)),
                ("mxfp4 is copied between layouts", run(check_mxfp4_copies, None)),
                ("nvfp4 is copied between layouts", run(check_nvfp4_copies, None)),
                ("nvfp4 is not copied where its meaning would change", run(check_no_copies, None)),
                ("metadata of the old quantisation are left out", run(check_metadata, None)),
                ("patterns choose tensors", run(check_globs, None)),
                ("a NaN is refused, or stored", run(check_not_finite, float("nan"))),
                ("an infinity is refused, or stored", run(check_not_finite, float("-inf"))),
                ("wrong requests are refused", run(check_refusals, None))]
    return tap.report(results)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
