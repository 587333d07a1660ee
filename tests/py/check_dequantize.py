#!/usr/bin/env python3
"""check_dequantize.py HEFT [--seconds S --seed N]: judge `heft convert --dequantize` by the
definitions of the schemes.

Stored tensors are drawn at random, recognised by Heft, converted to each type from one file and
from two shards, and compared with numbers that NumPy computes: to the bit, but any NaN equals any
other.  Models that cannot be decoded must be refused, by name.  The judge is itself tested with
numbers that were derived by hand.  With --seconds, models are drawn again and again, from other
seeds, until the time is over.  TAP on stdout."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import gguf_models
import quantised_decoders as decode
import quantised_encoders as encode
import quantised_models as models
import read_safetensors
from quantised_cases import CASES, module_of, stored_names
from quantised_decoders import rounded
from quantised_refusals import REFUSALS
from quantised_vectors import results as vector_results

# The option's type, the type of the result, and whether the model has two shards
RUNS = [("", None, False), ("=f32", "F32", False), ("=f16", "F16", False), ("=bf16", "BF16", False),
        ("=f32", "F32", True)]
ORDINARY = { # in every model, and never changed
    "model.embed_tokens.weight": ("BF16", (7, 5)), "model.norm.weight": ("F32", (9, )),
    "model.layers.0.proj.bias": ("F16", (6, )), "model.rotary.inv_freq": ("F32", (2, 3)),
    "model.position_ids": ("I64", (1, 4)), "model.layers.0.norm.weight": ("F16", (300, ))}
# An empty tensor beside the weights of ComfyUI, of the type that they had
MARKER = "scaled_fp8"
INVALID, UNSUPPORTED = 3, 5  # exit statuses


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


SEED = [""] # seed of this round


def seeded(text):
    return np.random.default_rng(zlib.crc32((SEED[0] + text).encode()))


def ordinary(further):
    rng = seeded("ordinary")
    return {name: models.codes(rng, *of) for name, of in {**ORDINARY, **further}.items()}


def draw(weight, i, title):
    """Return the name of weight i, its parts by role, and its stored tensors by name."""
    name, suffixes = stored_names(weight, i)
    rng = seeded(f"{title} {i}")
    parts = weight.builder(rng, **weight.options)
    stored = {suffixes[role]: part for role, part in parts.items()}
    if "unused" in suffixes:
        stored[suffixes["unused"]] = models.scales(rng, "F32", ())
    return name, parts, stored


# ---- models that are decoded ------------------------------------------------------------------


def make(case):
    """Return the stored parts, the names of packed weights, and the decoded numbers with the type
    that they have without an option."""
    stored, packed, decoded = {}, [], {}
    for i, weight in enumerate(case.weights):
        name, parts, tensors = draw(weight, i, case.title)
        stored.update(tensors)
        packed.append(stored_names(weight, i)[1]["weight"])
        kind = parts.get("scale", parts.get("absmax")).dtype
        decoded[name] = (weight.decoder(parts, **weight.options),
                         kind if kind in ("F16", "BF16") else "BF16")
    return stored, packed, decoded


def recognised(case, folder, parts):
    p = heft("info", "--json", folder)
    found = json.loads(p.stdout).get("quantised", []) if not p.returncode else []
    got = {k["scheme"] for k in found}, *(sum(k[m] for k in found) for m in ("tensors", "parts"))
    if got != (case.schemes, len(case.weights), parts):
        yield (f"info finds {got}, not {(case.schemes, len(case.weights), parts)} "
               f"(schemes, tensors, parts): {p.stderr}")


def too_large(decoded, dtype):
    """Return the tensors with finite numbers that become infinite, and the types in which."""
    types = {name: dtype or own for name, (_, own) in decoded.items()}
    return {name: kind for name, kind in types.items()
            if np.any(np.isfinite(decoded[name][0])
                      & np.isinf(decode.numbers(rounded(decoded[name][0], kind))))}


def is_refused(folder, out, option, large):
    p = heft("convert", "--dequantize" + option, folder, out)
    reasons = [f"tensor '{name}' has numbers that are too large for {kind.lower()}"
               for name, kind in large.items()]
    if p.returncode != UNSUPPORTED or out.exists() or not any(r in p.stderr for r in reasons):
        yield f"{large} is too large: ends with {p.returncode}: {p.stderr[:300]}"


def converts(folder, out, option, wanted, *further):
    p = heft("convert", "--dequantize" + option, *further, folder, out)
    if p.returncode:
        yield f"ends with {p.returncode}: {p.stderr[:300]}"
        return
    try:
        read_safetensors.read(out, of_heft=True)
    except read_safetensors.InvalidFile as e:
        yield f"the written file is invalid: {e}"
        return
    left = models.metadata_of(out)
    if any("quantization" in key + text for key, text in left.items()):
        yield f"metadata of the quantised model: {left}"
    got = models.unpack(out)
    got.pop(MARKER, None)
    yield from models.differ(got, wanted, any_nan=True)


def check_case(case, scratch):
    stored, packed, decoded = make(case)
    kept = ordinary(case.kept)
    marker = {MARKER: models.integers("F8_E4M3", [])} if "ComfyUI" in case.title else {}
    folders = [scratch / "one", scratch / "two"]
    for folder, second in zip(folders, ((), sorted(set(stored) - set(packed)))):
        models.write(folder, {**kept, **stored, **marker}, case.settings, second)
    yield from recognised(case, folders[0], len(stored))
    for n, (option, dtype, in_shards) in enumerate(RUNS):
        wanted = {name: rounded(values, dtype or own) for name, (values, own) in decoded.items()}
        out, large = scratch / f"{n}.safetensors", too_large(decoded, dtype)
        if large:
            yield from is_refused(folders[in_shards], out, option, large)
            casts = [word for name, kind in large.items()
                     for word in ("--cast", f"{name}={kind.lower()}")]
            yield from converts(folders[in_shards], scratch / f"cast{n}.safetensors", "=f32",
                                {**kept, **{name: wanted.pop(name) for name in large},
                                 **{name: rounded(decoded[name][0], "F32") for name in wanted}},
                                *casts)
        drops = [word for name in large for word in ("--drop", name)]
        for complaint in converts(folders[in_shards], out, option, {**kept, **wanted}, *drops):
            yield f"--dequantize{option}, {'two shards' if in_shards else 'a file'}: {complaint}"


def check_gguf_factors(_, scratch):
    """nvfp4 in GGUF: a factor for each expert, also in a stack whose tensor has one."""
    rng, tensors, wanted = seeded("gguf"), {}, {}
    for name, shape, factors in (("blk.0.ffn_up_exps", (3, 8, 128), 3),
                                 ("blk.0.ffn_down_exps", (2, 40, 1088), 2),
                                 ("blk.0.ffn_gate_exps", (2, 8, 64), 1),
                                 ("blk.0.attn_q", (4, 64), 1)):
        *rows, columns = shape
        codes = rng.integers(0, 16, shape, np.uint8)
        scale = rng.integers(0, 127, (*rows, columns // 16), np.uint8)
        factor = rng.uniform(1e-3, 1e-2, factors).astype(np.float32)
        blocks = encode.gguf_blocks(codes, scale, 16, 4)
        tensors[name + ".weight"] = (shape, "nvfp4", blocks)
        tensors[name + ".scale"] = factor
        x = np.where(codes == 8, np.float32(0), decode.E2M1[codes])
        x = x * np.repeat(decode.E4M3[scale], 16, -1)
        each = factor.reshape(-1, *(1, ) * (len(shape) - 1)) if factors > 1 else factor[0]
        wanted[name + ".weight"] = rounded(x * each, "F32")
    gguf_models.write(scratch / "m.gguf", {"general.architecture": "llama"}, tensors)
    yield from converts(scratch / "m.gguf", scratch / "m.safetensors", "=f32", wanted)
    out = scratch / "q.safetensors"
    p = heft("convert", "--quantize", "nvfp4:modelopt", scratch / "m.gguf", out)
    if p.returncode != 5 or "ffn_up_exps" not in p.stderr:
        yield f"factors of experts are copied: {p.returncode} {p.stderr}"


# ---- models that are refused ------------------------------------------------------------------


def pattern(refusal, suffix):
    """Return a regular expression; a suffix that begins with a dot follows the module."""
    if not suffix.startswith(("\\.", "(\\.")):
        return re.compile(suffix)
    layer = "1" if refusal.left_out or refusal.put else "[01]"
    module = module_of(refusal.names, "LAYER").replace(".", r"\.").replace("LAYER", layer)
    return re.compile(rf"(?<![\w.]){module}{suffix}(?!\w|\.\w)")


def check_refusal(refusal, scratch):
    """Neither decoded nor quantised again."""
    stored, module = {}, module_of(refusal.names, 1)
    for i in (0, 1) if refusal.builder else ():
        stored.update(draw(refusal, i, refusal.title)[2])
    for suffix in refusal.left_out:
        del stored[module + suffix]
    stored.update({module + suffix: part for suffix, part in refusal.put.items()})
    models.write(scratch / "model", {**ordinary({}), **stored}, refusal.settings)
    (scratch / "out").mkdir()
    patterns = [pattern(refusal, s) for s in (refusal.weight, refusal.partner)]
    for option in ("--dequantize=f32", "--requantize --allow-nan --quantize=int8"):
        p = heft("convert", *option.split(), scratch / "model", scratch / "out" / "o.safetensors")
        if p.returncode not in (INVALID, UNSUPPORTED):
            yield f"{option}: ends with {p.returncode}"
        if not any(all(x.search(line) for x in patterns) for line in p.stderr.splitlines()):
            yield (f"{option}: no line has {' and '.join(x.pattern for x in patterns)}: "
                   f"{p.stderr[:300]}")
        if any((scratch / "out").iterdir()):
            yield f"{option}: there is {[f.name for f in (scratch / 'out').iterdir()]}"


def run(check, row):
    with tempfile.TemporaryDirectory() as scratch:
        return list(check(row, pathlib.Path(scratch)))


def rounds(seconds, seed):
    """Judge models of the seeds `seed`, `seed` + 1 and so on; print the figures of a campaign."""
    end, results = time.monotonic() + seconds, []
    while time.monotonic() < end:
        SEED[0] = f"{seed} "
        for row in CASES:
            if time.monotonic() < end:
                results.append((f"{row.title}, seed {seed}, is decoded", run(check_case, row)))
        seed += 1
    print("# " + json.dumps({"campaign": "quantised", "cases": len(results),
                             "failures": sum(bool(c) for _, c in results)}))
    return results


def main():
    np.seterr(all="ignore") # infinite and subnormal numbers are wanted
    if sys.argv[2:3] == ["--seconds"]:
        return tap.report(rounds(float(sys.argv[3]), int(sys.argv[5])))
    results = list(vector_results())
    results += [(f"{row.title} is decoded", run(check_case, row)) for row in CASES]
    results += [("nvfp4 of GGUF with factors of experts", run(check_gguf_factors, None))]
    results += [(f"{row.title} is refused", run(check_refusal, row)) for row in REFUSALS]
    return tap.report(results)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
