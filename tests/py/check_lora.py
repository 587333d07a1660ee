#!/usr/bin/env python3
"""check_lora.py HEFT: judge `heft convert --lora` by NumPy, and where it is there by PyTorch.

NumPy follows the documented order of sums in f32, so that merged weights are compared to the bit.
PyTorch multiplies matrices in an order of its own: its results are equal where all sums are exact,
and close otherwise. Adapters that do not fit must be refused, by name. TAP on stdout."""
import json
import math
import pathlib
import shutil
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

import lora_large
import lora_single_file
import quantised_models as models
from lora_refusals import REFUSALS
from quantised_decoders import numbers, rounded

HEFT = pathlib.Path(sys.argv[1]).resolve()
F32 = np.float32
PEFT = "base_model.model."


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


def drawn(name, shape, scale=1.0):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (rng.standard_normal(shape) * scale).astype(F32)


def stored(values, dtype="F32"):
    return rounded(np.ascontiguousarray(values, F32), dtype)


def value(tensor):
    return np.asarray(numbers(tensor), F32)


# ---- the definition ---------------------------------------------------------------------------


def product(up, down):
    """Add the products from rank 0 on, each rounded, as the documentation says."""
    total = np.zeros((up.shape[0], down.shape[1]), F32)
    for k in range(up.shape[1]):
        total = total + up[:, k:k + 1] * down[k:k + 1, :]
    return total


def merged(weight, up, down, scale, shape=None, round_to=None):
    delta = F32(scale) * product(up, down)
    if round_to:
        delta = value(rounded(delta, round_to))
    return weight + delta.reshape(weight.shape if shape is None else shape)


# ---- adapters ---------------------------------------------------------------------------------

BASE = {
    "model.embed_tokens.weight": stored(drawn("embed", (40, 24)), "BF16"),
    "model.layers.0.self_attn.q_proj.weight": stored(drawn("q", (48, 24)), "BF16"),
    "model.layers.0.self_attn.q_proj.bias": stored(drawn("qb", (48, )), "BF16"),
    "model.layers.0.mlp.up_proj.weight": stored(drawn("up", (70, 24)), "F16"),
    "model.layers.0.mlp.down_proj.weight": stored(drawn("down", (24, 70)), "F32"),
    "model.layers.0.mlp.experts.gate_up_proj": stored(drawn("gu", (3, 24, 10)), "BF16"),
    "model.layers.0.mlp.experts.down_proj": stored(drawn("ed", (3, 5, 24)), "BF16"),
    "model.layers.0.conv.weight": stored(drawn("conv", (6, 4, 3, 3)), "BF16"),
    "model.layers.0.point.weight": stored(drawn("point", (6, 4, 1, 1)), "F32"),
    "model.layers.0.c_attn.weight": stored(drawn("gpt", (24, 33)), "F32"),
    "model.layers.0.norm.weight": stored(drawn("norm", (24, )), "F32"),
    "lm_head.weight": stored(drawn("head", (40, 24)), "BF16"),
}


class Adapter:
    """The tensors and settings of an adapter, and what it does to the values of a model."""

    def __init__(self, config=None, dtype="F32"):
        self.tensors, self.config, self.dtype, self.steps = {}, config, dtype, []
        self.round_to = None

    def add(self, name, values):
        self.tensors[name] = stored(values, self.dtype)
        return value(self.tensors[name])

    def step(self, name, change):
        self.steps.append((name, change))

    def linear(self, module, name, rows, columns, rank=4, scale=2.0, names=("lora_A", "lora_B"),
               prefix=PEFT, shape_a=None, shape_b=None):
        a = self.add(f"{prefix}{module}.{names[0]}.weight", drawn(f"{module}a", shape_a or
                                                                   (rank, columns)))
        b = self.add(f"{prefix}{module}.{names[1]}.weight", drawn(f"{module}b", shape_b or
                                                                   (rows, rank)))
        a, b = a.reshape(rank, -1), b.reshape(-1, rank)
        self.step(name, lambda w, f: merged(w, b, a, f * scale, round_to=self.round_to))
        return a, b

    def write(self, folder, file="adapter_model.safetensors"):
        folder.mkdir()
        (folder / file).write_bytes(models.pack(self.tensors))
        if self.config is not None:
            (folder / "adapter_config.json").write_text(json.dumps(self.config))
        return folder

    def apply(self, values, factor=1.0):
        for name, change in self.steps:
            values[name] = np.asarray(change(values[name], factor), F32)


def config(**further):
    return {"peft_type": "LORA", "r": 4, "lora_alpha": 8, **further}


Q, UP = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj"
DOWN, CONV = "model.layers.0.mlp.down_proj", "model.layers.0.conv"
EXPERTS = "model.layers.0.mlp.experts"


def peft(dtype="F32", **further):
    a = Adapter(config(**further), dtype)
    a.linear(Q, Q + ".weight", 48, 24)
    a.linear(UP, UP + ".weight", 70, 24)
    a.linear(DOWN, DOWN + ".weight", 24, 70)
    return a


def patterns():
    a = Adapter(config(rank_pattern={"up_proj": 2, r"layers\.\d+\.mlp\.down_proj": 7},
                       alpha_pattern={"mlp.down_proj": 3.5}))
    a.linear(Q, Q + ".weight", 48, 24)
    a.linear(UP, UP + ".weight", 70, 24, rank=2, scale=4.0)
    a.linear(DOWN, DOWN + ".weight", 24, 70, rank=7, scale=0.5)
    return a


MANY = "100,000 patterns"


def many_patterns():
    """The first pattern that names a module decides; others are looked up, however many."""
    a = patterns()
    others = {f"other.layers.{n}.mlp.{n % 7}.up_proj": 9 for n in range(100000)}
    a.config["rank_pattern"] = others | {"mlp.up.proj": 2} | a.config["rank_pattern"] | {
        UP: 9, "up_proj$": 9}
    a.config["alpha_pattern"] = {"model.layers.0.mlp": 9, "lp.down_proj": 9, "down_pro": 9,
                                 "layers.[1-9].mlp.down_proj": 9, "m.p.down.proj": 3.5, DOWN: 9}
    return a


def rslora():
    a = Adapter(config(use_rslora=True, r=3, lora_alpha=5))
    a.linear(Q, Q + ".weight", 48, 24, rank=3, scale=5 / math.sqrt(3))
    return a


def turned():
    a = Adapter(config(fan_in_fan_out=True))
    down = a.add(f"{PEFT}model.layers.0.c_attn.lora_A.weight", drawn("ca", (4, 24)))
    up = a.add(f"{PEFT}model.layers.0.c_attn.lora_B.weight", drawn("cb", (33, 4)))
    a.step("model.layers.0.c_attn.weight", lambda w, f: merged(w, down.T, up.T, 2 * f))
    a.linear(Q, Q + ".weight", 48, 24)
    return a


def embedding():
    a = Adapter(config())
    down = a.add(f"{PEFT}model.embed_tokens.lora_embedding_A", drawn("ea", (4, 40)))
    up = a.add(f"{PEFT}model.embed_tokens.lora_embedding_B", drawn("eb", (24, 4)))
    a.step("model.embed_tokens.weight", lambda w, f: merged(w, down.T, up.T, 2 * f))
    return a


def whole():
    a = Adapter(config(modules_to_save=["lm_head"], bias="all"))
    head = a.add(f"{PEFT}lm_head.weight", drawn("newhead", (44, 24))) # four more tokens
    bias = a.add(f"{PEFT}{Q}.base_layer.bias", drawn("newbias", (48, )))
    a.step("lm_head.weight", lambda w, f: head)
    a.linear(Q, Q + ".weight", 48, 24)
    a.step(Q + ".bias", lambda w, f: bias)
    return a


def added_bias():
    a = Adapter(config(lora_bias=True))
    a.linear(Q, Q + ".weight", 48, 24)
    bias = a.add(f"{PEFT}{Q}.lora_B.bias", drawn("addbias", (48, )))
    a.step(Q + ".bias", lambda w, f: w + F32(2 * f) * bias)
    return a


def experts():
    a = Adapter(config(target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
                       r=2))
    for levels, name, rows, columns, turned_ in ((".base_layer", "gate_up_proj", 24, 10, True),
                                                 ("", "down_proj", 5, 24, False)):
        inputs, outputs = (rows, columns) if turned_ else (columns, rows)
        down = a.add(f"{PEFT}{EXPERTS}{levels}.lora_A.weight", drawn(name + "a", (6, inputs)))
        up = a.add(f"{PEFT}{EXPERTS}{levels}.lora_B.weight", drawn(name + "b", (outputs, 6)))
        down, up = down.reshape(3, 2, inputs), up.reshape(outputs, 2, 3)

        def change(w, f, down=down, up=up, turned_=turned_):
            return np.stack([merged(w[e], down[e].T, up[:, :, e].T, 4 * f) if turned_ else
                             merged(w[e], up[:, :, e], down[e], 4 * f) for e in range(3)])

        a.step(f"{EXPERTS}.{name}", change)
    return a


def convolutions():
    a = Adapter()
    names, flat = ("lora_down", "lora_up"), "lora_unet_"
    a.linear("model_layers_0_conv", CONV + ".weight", 6, 36, names=names, prefix=flat, scale=0.75,
             shape_a=(4, 4, 3, 3), shape_b=(6, 4, 1, 1))
    a.linear("model_layers_0_point", "model.layers.0.point.weight", 6, 4, names=names, prefix=flat,
             scale=1.0, shape_a=(4, 4, 1, 1), shape_b=(6, 4, 1, 1))
    a.tensors["lora_unet_model_layers_0_conv.alpha"] = stored(np.array(3))
    return a


def tucker():
    a = Adapter()
    base = "lora_unet_model_layers_0_conv."
    down = a.add(base + "lora_down.weight", drawn("td", (2, 4, 1, 1))).reshape(2, 4)
    mid = a.add(base + "lora_mid.weight", drawn("tm", (2, 2, 3, 3))).reshape(2, 2, 9)
    up = a.add(base + "lora_up.weight", drawn("tu", (6, 2, 1, 1))).reshape(6, 2)
    kernel = np.stack([product(down.T, mid[k]).reshape(-1) for k in range(2)])
    a.step(CONV + ".weight", lambda w, f: merged(w, up, kernel, f))
    return a


def kohya():
    a = Adapter()
    flat = Q.replace(".", "_")
    a.linear(flat, Q + ".weight", 48, 24, names=("lora_down", "lora_up"), prefix="lora_te_",
             scale=0.5)
    a.tensors[f"lora_te_{flat}.alpha"] = stored(np.array(2))
    return a


def diffusers():
    a = Adapter()
    a.linear(Q.removeprefix("model."), Q + ".weight", 48, 24, prefix="", scale=1.0)
    a.linear(UP, UP + ".weight", 70, 24, prefix="", scale=1.0, names=("lora.down", "lora.up"))
    a.linear(DOWN.replace(".down_proj", ".processor.down_proj_lora"), DOWN + ".weight", 24, 70,
             prefix="", scale=1.0, names=("down", "up"))
    a.tensors = {name.replace("_lora.down", "_lora.down"): t for name, t in a.tensors.items()}
    return a


def dora():
    a = Adapter(config(use_dora=True))
    for module, rows, columns in ((Q, 48, 24), (DOWN, 24, 70)):
        a.linear(module, module + ".weight", rows, columns)
        magnitudes = np.abs(drawn(module + "m", (rows, ))) + 1
        m = a.add(f"{PEFT}{module}.lora_magnitude_vector", magnitudes)

        def change(w, f, m=m):
            norm = np.array([math.sqrt(sum(float(x) * float(x) for x in row)) for row in w], F32)
            return w * (m / norm)[:, None]

        a.step(module + ".weight", change)
    return a


def rounded_twice(dtype):
    a = peft(dtype)
    a.round_to = dtype
    return a


def difference():
    a = Adapter()
    diff = a.add("diffusion_model.layers.0.mlp.up_proj.diff", drawn("diff", (70, 24)))
    a.step(UP + ".weight", lambda w, f: w + F32(f) * diff)
    a.tensors = {n.replace("diffusion_model.", "model."): t for n, t in a.tensors.items()}
    return a


CASES = [ # title, adapters with their scales, further options
    ("PEFT, f32", [(peft(), None)], []),
    ("PEFT, bf16", [(peft("BF16"), None)], []),
    ("PEFT, f16, with a scale", [(peft("F16"), 0.3)], []),
    ("a negative scale", [(peft(), -1.5)], []),
    ("rank_pattern and alpha_pattern", [(patterns(), None)], []),
    (MANY, [(many_patterns(), None)], []),
    ("use_rslora", [(rslora(), None)], []),
    ("fan_in_fan_out", [(turned(), None)], []),
    ("an embedding", [(embedding(), None)], []),
    ("modules_to_save and trained biases", [(whole(), None)], []),
    ("biases that are added", [(added_bias(), 0.5)], []),
    ("parameters of experts", [(experts(), 1.25)], []),
    ("convolutions", [(convolutions(), 0.7)], []),
    ("a convolution in three steps", [(tucker(), None)], []),
    ("names of kohya", [(kohya(), None)], []),
    ("names of diffusers", [(diffusers(), None)], []),
    ("magnitudes", [(dora(), None)], []),
    ("a difference", [(difference(), 0.5)], []),
    ("three adapters", [(peft(), 0.5), (peft("BF16"), None), (whole(), None)], []),
    ("adapters after magnitudes", [(dora(), None), (peft(), None), (dora(), 0.5)], []),
    ("the rounding of PEFT, bf16", [(rounded_twice("BF16"), None)], ["--peft-rounding"]),
    ("the rounding of PEFT, f16", [(rounded_twice("F16"), 0.3)], ["--peft-rounding"]),
    ("the rounding of PEFT does not change f32", [(peft(), None)], ["--peft-rounding"]),
]


def expected(adapters):
    values = {name: value(t) for name, t in BASE.items()}
    touched = set()
    for adapter, factor in adapters:
        adapter.apply(values, 1.0 if factor is None else factor)
        touched |= {name for name, _ in adapter.steps}
    return {name: stored(values[name], t.dtype) if name in touched else t
            for name, t in BASE.items()}


def lora_options(folder, adapters):
    options = []
    for i, (adapter, factor) in enumerate(adapters):
        path = adapter.write(folder / f"adapter{i}")
        options += ["--lora", f"{path}" if factor is None else f"{path}={factor}"]
    return options


def differences(path, wanted):
    got = models.unpack(path)
    complaints = [f"tensors {sorted(got)}"] if sorted(got) != sorted(wanted) else []
    for name in wanted.keys() & got.keys():
        g, w = got[name], wanted[name]
        if g.dtype != w.dtype or g.bits.shape != w.bits.shape:
            complaints.append(f"{name}: {g.dtype} {g.bits.shape}, not {w.dtype} {w.bits.shape}")
        elif not np.array_equal(g.bits, w.bits):
            at = np.flatnonzero(g.bits != w.bits)
            complaints.append(f"{name}: {at.size} of {g.bits.size} elements differ, the first is "
                              f"{at[0]}")
    return complaints


def check_case(case):
    title, adapters, options = case
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        lora = lora_options(folder, adapters)
        ran = heft("convert", *lora, *options, folder / "base", folder / "out.safetensors")
        said = [line for line in ran.stderr.splitlines()
                if not (title == MANY and "/adapter0: warning: 'other.layers." in line)]
        complaints = said if ran.returncode or said else []
        if not ran.returncode:
            complaints += differences(folder / "out.safetensors", expected(adapters))
    return title, complaints


def check_large(title, base, adapter):
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", base, {})
        lora = lora_options(folder, [(adapter, None)])
        ran = heft("convert", *lora, folder / "base", folder / "out.safetensors")
        if ran.returncode:
            return title, [ran.stderr]
        values = {name: value(t) for name, t in base.items()}
        adapter.apply(values)
        wanted = {name: stored(values[name], t.dtype) for name, t in base.items()}
        return title, differences(folder / "out.safetensors", wanted)


# ---- the same from every kind of file, in every way -------------------------------------------

WAYS = [ # title, options of the conversion of the base, its suffix, options of the merge
    ("from two shards", None, None, []),
    ("from zTensor, compressed", ["--compress", "zstd"], "zt", []),
    ("from npz", ["--drop", "*norm*"], "npz", []),
    ("from PyTorch", [], "pt", []),
    ("from GGUF", [], "gguf", []),
    ("on one thread", [], "safetensors", ["--threads", "1"]),
    ("on eight threads", [], "safetensors", ["--threads", "8"]),
    ("without mapping", [], "safetensors", ["--access", "read"]),
]


def check_way(way):
    title, how, suffix, options = way
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        second = {UP + ".weight"} if how is None else ()
        base = {n: t for n, t in BASE.items() if suffix not in ("gguf", "npz") or t.dtype != "BF16"}
        base = base if suffix != "npz" else {n: t for n, t in base.items() if "norm" not in n}
        models.write(folder / "base", base, {}, second)
        source = folder / "base"
        if suffix:
            source = folder / f"base.{suffix}"
            ran = heft("convert", *how, folder / "base", source)
            complaints += [ran.stderr] if ran.returncode else []
        a = Adapter(config())
        a.linear(UP, UP + ".weight", 70, 24)
        a.linear(DOWN, DOWN + ".weight", 24, 70)
        lora = lora_options(folder, [(a, 0.5)])
        ran = heft("convert", *lora, *options, source, folder / "out.safetensors")
        complaints += [ran.stderr] if ran.returncode else []
        wanted = {n: t for n, t in expected([(a, 0.5)]).items() if n in base}
        if not complaints:
            got = models.unpack(folder / "out.safetensors")
            complaints += [
                f"{n} differs" for n in wanted
                if not np.array_equal(got[n].bits.reshape(-1), wanted[n].bits.reshape(-1))
            ]
    return f"{title}", complaints


def check_quantised():
    """A quantised base is decoded, merged, and rounded once."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        fp8 = folder / "fp8" / "model.safetensors"
        for name in ("fp8", "int8"):
            (folder / name).mkdir()
        ran = heft("convert", "--quantize", "fp8", folder / "base", fp8)
        lora = lora_options(folder, [(peft(), None)])
        refused = heft("convert", *lora, fp8, folder / "no.safetensors")
        if refused.returncode != 5 or "--dequantize" not in refused.stderr:
            complaints.append(f"not refused: {refused.stderr}")
        merged_ = heft("convert", "--dequantize=f32", *lora, fp8,
                       folder / "a.safetensors")
        heft("convert", "--dequantize=f32", fp8, folder / "f32.safetensors")
        two = heft("convert", *lora, folder / "f32.safetensors", folder / "b.safetensors")
        for ran in (merged_, two):
            complaints += [ran.stderr] if ran.returncode else []
        if not complaints and (folder / "a.safetensors").read_bytes() != (
                folder / "b.safetensors").read_bytes():
            complaints.append("both results differ")
        again = heft("convert", "--quantize", "int8", "--requantize", *lora,
                     fp8, folder / "int8" / "model.safetensors")
        complaints += [again.stderr] if again.returncode else []
    return "a quantised base", complaints


def check_blocks():
    """Weights in blocks are refused, unless the result is cast."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        base = {"blk.0.w.weight": stored(drawn("blocks", (8, 64)), "F32")}
        (folder / "base.safetensors").write_bytes(models.pack(base))
        heft("convert", "--cast", "q8_0", folder / "base.safetensors", folder / "base.gguf")
        heft("convert", "--cast", "f32", folder / "base.gguf", folder / "plain.safetensors")
        a = Adapter(config())
        a.linear("blk.0.w", "blk.0.w.weight", 8, 64)
        lora = lora_options(folder, [(a, None)])
        refused = heft("convert", *lora, folder / "base.gguf", folder / "no.gguf")
        if refused.returncode != 5 or "--cast f32" not in refused.stderr:
            complaints.append(f"not refused: {refused.stderr}")
        cast = heft("convert", "--cast", "f32", *lora, folder / "base.gguf",
                    folder / "out.safetensors")
        complaints += [cast.stderr] if cast.returncode else []
        if not complaints:
            w = value(models.unpack(folder / "plain.safetensors")["blk.0.w.weight"])
            values = {"blk.0.w.weight": w}
            a.apply(values)
            got = value(models.unpack(folder / "out.safetensors")["blk.0.w.weight"])
            complaints += [] if np.array_equal(got, values["blk.0.w.weight"]) else ["differs"]
    return "weights in blocks", complaints


def check_gguf():
    """An adapter of llama.cpp, whose alpha is in the metadata, is merged into a GGUF file."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        name = "blk.0.attn_q.weight"
        w, down, up = drawn("w", (32, 64)), drawn("a", (4, 64)), drawn("b", (32, 4))
        adapter = {name + ".lora_a": stored(down), name + ".lora_b": stored(up)}
        for file, tensors, options in (("base", {name: stored(w)}, []),
                                       ("adapter", adapter, ["--set", "adapter.lora.alpha:f32=6"])):
            (folder / "x.safetensors").write_bytes(models.pack(tensors))
            ran = heft("convert", "-f", *options, folder / "x.safetensors", folder / f"{file}.gguf")
            complaints += [ran.stderr] if ran.returncode else []
        ran = heft("convert", "--lora", folder / "adapter.gguf", folder / "base.gguf",
                   folder / "out.safetensors")
        complaints += [ran.stderr] if ran.returncode else []
        if not complaints:
            got = value(models.unpack(folder / "out.safetensors")[name])
            complaints += [] if np.array_equal(got, merged(w, up, down, 1.5)) else ["differs"]
    return "an adapter of llama.cpp", complaints


def check_metadata():
    """The settings that diffusers writes into the metadata count."""
    complaints = []
    settings = {"transformer.lora_alpha": 3, "transformer.r": 4, "unet.lora_alpha": 99,
                "transformer.alpha_pattern": {"proj": 2}}
    w, down, up = drawn("w", (32, 64)), drawn("a", (4, 64)), drawn("b", (32, 4))
    for module, scale in (("blocks.0.to_q", 0.75), ("blocks.0.proj", 0.5)):
        adapter = {f"transformer.{module}.lora_A.weight": stored(down),
                   f"transformer.{module}.lora_B.weight": stored(up)}
        with tempfile.TemporaryDirectory() as tmp:
            folder = pathlib.Path(tmp)
            (folder / "base.safetensors").write_bytes(models.pack({module + ".weight": stored(w)}))
            (folder / "adapter.safetensors").write_bytes(
                models.pack(adapter, {"lora_adapter_metadata": json.dumps(settings)}))
            ran = heft("convert", "--lora", folder / "adapter.safetensors",
                       folder / "base.safetensors", folder / "out.safetensors")
            if ran.returncode:
                return "settings in the metadata", [ran.stderr]
            got = value(models.unpack(folder / "out.safetensors")[module + ".weight"])
            complaints += [] if np.array_equal(got, merged(w, up, down, scale)) else [module]
    return "settings in the metadata", complaints


def check_shares():
    """Shares give the bytes of one conversion; a share with another adapter is refused."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        lora = lora_options(folder, [(peft(), None)])
        whole_, shared = folder / "whole.safetensors", folder / "shared.safetensors"
        heft("convert", *lora, folder / "base", whole_)
        first = heft("convert", *lora, "--share", "1/2", folder / "base", shared)
        other = heft("convert", lora[0], lora[1] + "=0.5", "--share", "2/2", folder / "base",
                     shared)
        second = heft("convert", *lora, "--share", "2/2", folder / "base", shared)
        complaints += [r.stderr for r in (first, second) if r.returncode]
        complaints += [] if other.returncode else ["another adapter was accepted"]
        if not complaints and whole_.read_bytes() != shared.read_bytes():
            complaints.append("the shares differ")
    return "shares", complaints


def check_shared_name():
    """Two weights of one flat name: the adapter says of neither that it is meant."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", {n: stored(drawn(n, (48, 24)))
                                       for n in ("a.b_c.weight", "a_b.c.weight")}, {})
        a = Adapter()
        a.linear("a_b_c", "a.b_c.weight", 48, 24, names=("lora_down", "lora_up"),
                 prefix="lora_unet_")
        ran = heft("convert", *lora_options(folder, [(a, None)]), folder / "base",
                   folder / "out.safetensors")
        complaints = [] if ran.returncode == 2 and "match nothing" in ran.stderr else [
            f"{ran.returncode}: {ran.stderr}"]
    return "refused: a flat name of two weights", complaints


def check_scale():
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        lora = lora_options(folder, [(peft(), None)])
        for scale in ("inf", "nan"):
            ran = heft("convert", "--lora", f"{lora[1]}={scale}", folder / "base",
                       folder / "out.safetensors")
            if ran.returncode != 2 or "is not finite" not in ran.stderr:
                complaints.append(f"{scale}: {ran.returncode}: {ran.stderr}")
    return "refused: a scale that is not finite", complaints


def check_kept():
    """An adapter is an input, which is never overwritten."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        lora = lora_options(folder, [(peft(), None)])
        file = folder / "adapter0" / "adapter_model.safetensors"
        before = file.read_bytes()
        for path in (lora[1], file):
            ran = heft("convert", "-f", "--lora", path, folder / "base", file)
            if ran.returncode != 2 or "never overwritten" not in ran.stderr:
                complaints.append(f"{ran.returncode}: {ran.stderr}")
        complaints += ["it was overwritten"] if file.read_bytes() != before else []
    return "an adapter is not overwritten", complaints


# ---- PyTorch ----------------------------------------------------------------------------------


def check_torch(torch):
    """Sums of small integers are exact in any order; others are close."""
    complaints = []
    rng = np.random.default_rng(9)
    for is_exact in (True, False):
        draw = (lambda shape: rng.integers(-8, 9, shape).astype(F32)) if is_exact else (
            lambda shape: rng.standard_normal(shape).astype(F32))
        w, down, up = draw((300, 200)), draw((16, 200)), draw((300, 16))
        a = Adapter(config(r=16, lora_alpha=8))
        a.tensors = {f"{PEFT}w.lora_A.weight": stored(down), f"{PEFT}w.lora_B.weight": stored(up)}
        with tempfile.TemporaryDirectory() as tmp:
            folder = pathlib.Path(tmp)
            (folder / "base.safetensors").write_bytes(models.pack({"w.weight": stored(w)}))
            lora = lora_options(folder, [(a, None)])
            ran = heft("convert", *lora, folder / "base.safetensors", folder / "out.safetensors")
            complaints += [ran.stderr] if ran.returncode else []
            got = value(models.unpack(folder / "out.safetensors")["w.weight"])
        t = torch.from_numpy
        want = (t(w) + (t(up) @ t(down)) * 0.5).numpy()
        close = np.abs(got - want).max() <= 16 * np.finfo(F32).eps * np.abs(want).max()
        if not (np.array_equal(got, want) if is_exact else close):
            complaints.append(f"exact: {is_exact}, largest difference {np.abs(got - want).max()}")
    return "PyTorch", complaints


# ---- refusals, lists --------------------------------------------------------------------------


def check_refusal(row):
    title, change, options, code, words = row
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        a = change(sys.modules[__name__])
        path = a.write(folder / "adapter")
        out = folder / "out.safetensors"
        ran = heft("convert", "--lora", path, *options, folder / "base", out)
        complaints = [f"status {ran.returncode}, not {code}"] if ran.returncode != code else []
        complaints += [f"{words!r} is not in the message"] if words not in ran.stderr else []
        complaints += ["there is an output"] if code and out.exists() else []
        complaints = [*complaints, ran.stderr] if complaints else []
    return f"refused: {title}" if code else title, complaints


def check_list():
    """A dry run lists what is merged, and writes nothing; --json prints the same."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        models.write(folder / "base", BASE, {})
        lora = lora_options(folder, [(whole(), 0.5)])
        args = ("convert", *lora, folder / "base", folder / "out.safetensors")
        table = heft(*args, "--dry-run")
        listed = heft(*args, "--dry-run", "--json")
        complaints += [table.stderr] if table.returncode else []
        complaints += ["a file was written"] if (folder / "out.safetensors").exists() else []
        if Q + ".weight" not in table.stdout or "replaced" not in table.stdout:
            complaints.append(table.stdout)
        rows = {r["name"]: r for r in json.loads(listed.stdout)["merged"]}
        row = rows.get(Q + ".weight", {})
        if (row.get("rank"), row.get("scale"), row.get("how")) != (4, 1.0, "product"):
            complaints.append(f"{rows}")
        shutil.rmtree(folder / "adapter0")
    return "a dry run lists what is merged", complaints


def main():
    results = [check_case(case) for case in CASES]
    results += [check_large(*case) for case in lora_large.cases(sys.modules[__name__])]
    results += [check_way(way) for way in WAYS]
    results += [check_quantised(), check_blocks(), check_list(), check_gguf(), check_metadata(),
                check_shares(), check_kept(), check_scale(),
                check_shared_name()]
    results += lora_single_file.results(sys.modules[__name__])
    results += [check_refusal(row) for row in REFUSALS]
    try:
        import torch
    except ImportError:
        torch = None
    if torch:
        results.append(check_torch(torch))
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
