#!/usr/bin/env python3
"""check_quality.py HEFT: judge `heft convert --quantize NAME --verify-quality` by NumPy.

What Heft has written is decoded by the definitions of the schemes and of ggml's blocks, and
compared with the source. The numbers of Heft must be the same on one thread and on several, into a
file and into a pipe, and those of a tensor with many runs must be as good as those of a small one.
TAP on stdout."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import check_quantize as schemes
import ggml_blocks
import quantised_models as models
from quantised_decoders import numbers, rounded

CLOSE = 1e-6


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)


def statistics(a, b):
    """Return the statistics of the pairs, over those of two finite numbers."""
    a, b = (np.asarray(x, np.float32).astype(np.float64).ravel() for x in (a, b))
    is_number = ~(np.isnan(a) | np.isnan(b))
    most = np.abs(np.where(a == b, 0, a - b))[is_number].max(initial=0)
    count, differing = a.size, int(np.sum((a != b) & ~(np.isnan(a) & np.isnan(b))))
    is_finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[is_finite], b[is_finite]
    squares = np.sum((a - b)**2)
    norms = np.sqrt(np.sum(a * a)) * np.sqrt(np.sum(b * b))
    return {"max_abs": most, "rmse": np.sqrt(squares / a.size) if a.size else None,
            "nmse": squares / np.sum(b * b) if np.any(b) else None,
            "cosine": np.sum(a * b) / norms if norms > 0 else None, "differing": differing,
            "compared": count}


def differ(title, got, want):
    for key, x in want.items():
        y = got[key]
        if key == "nmse" and x is None: # nothing but zeros is written
            continue
        if (x is None) != (y is None) or (x is not None and
                                          abs(float(y) - x) > CLOSE * max(abs(x), 1e-300)):
            yield f"{title}: {key} is {y}, not {x}"


def document_differs(document, pairs):
    """Compare the document of Heft with pairs of numbers of the source and of the file."""
    got = {t["name"]: t for t in document["tensors"]}
    if sorted(got) != sorted(pairs):
        yield f"tensors {sorted(got)}, not {sorted(pairs)}"
        return
    for name, (a, b) in pairs.items():
        yield from differ(name, got[name], statistics(a, b))
    every = [np.concatenate([np.ravel(p[i]) for p in pairs.values()]) for i in (0, 1)]
    yield from differ("total", document["total"], statistics(*every))
    if document["total"]["tensors"] != len(pairs):
        yield f"total has {document['total']['tensors']} tensors"


def converted(source, out, *args):
    """Convert on one thread and on several; return the document, or None and what is wrong."""
    texts = []
    for threads in (1, 4, 3):
        p = heft("convert", "-f", "-j", threads, "--verify-quality", "--json", *args, source, out)
        if p.returncode:
            return None, p.stderr.decode()
        texts.append(p.stdout)
    if len(set(texts)) > 1:
        return None, "the numbers depend on the threads"
    return json.loads(texts[0]), None


# ---- schemes ----------------------------------------------------------------------------------


def check_scheme(row, scratch):
    method, encoder, options, decoder, roles, _ = row
    weights, others = schemes.source()
    _, decoded = schemes.expected(weights, encoder, options, roles, decoder)
    models.write(scratch / "in", {**others, **weights}, {"config.json": {}})
    (scratch / "out").mkdir()
    document, why = converted(scratch / "in", scratch / "out/model.safetensors", "--quantize",
                              method)
    if why:
        yield why
        return
    yield from document_differs(document, {n: (numbers(weights[n]), decoded[n]) for n in weights})


def check_cut_runs(row, scratch):
    """Runs that lie in two buffers count once."""
    method, decoder, roles = row
    name = schemes.PREFIX + "mlp.up_proj.weight"
    x = np.random.default_rng(7).normal(0, 0.05, (2500, 2592)).astype(np.float32)
    models.write(scratch / "in", {name: rounded(x, "F32")}, {})
    out = scratch / "out.safetensors"
    document, why = converted(scratch / "in", out, "--quantize", method)
    if why:
        yield why
        return
    parts = models.unpack(out)
    decoded = decoder({role: parts[name + suffix] for role, suffix in roles.items()})
    yield from document_differs(document, {name: (x, decoded)})


def check_nan(_, scratch):
    """NaN and infinities are left out of the sums."""
    name = schemes.PREFIX + "mlp.up_proj.weight"
    x = np.random.default_rng(3).normal(0, 1, (8, 256)).astype(np.float32)
    x[1, 3], x[2, 100], x[3, 200] = np.nan, np.inf, -np.inf
    tensor = rounded(x, "F32")
    models.write(scratch / "in", {name: tensor}, {})
    out = scratch / "out.safetensors"
    document, why = converted(scratch / "in", out, "--allow-nan", "--quantize", "fp8:1x128")
    if why:
        yield why
        return
    parts = models.unpack(out)
    decoded = schemes.decode.fp8({"weight": parts[name], "scale": parts[name + "_scale_inv"]},
                                 block=(1, 128))
    got = document["tensors"][0]
    want = statistics(x, decoded)
    keys = "rmse", "nmse", "cosine", "differing", "compared"
    yield from differ(name, {k: got[k] for k in keys}, {k: want[k] for k in keys})
    if got["max_abs"] != "Infinity":
        yield f"the largest difference is {got['max_abs']}"


# ---- copies, and tensors that are read more than once -----------------------------------------


def check_copy(_, scratch):
    """Copied codes are what they were; decoded in f32, nothing differs."""
    name = schemes.PREFIX + "mlp.up_proj.weight"
    x = rounded(np.random.default_rng(4).normal(0, 1, (16, 256)).astype(np.float32), "F32")
    models.write(scratch / "in", {name: x}, {})
    (scratch / "mid").mkdir()
    (scratch / "out").mkdir()
    heft("convert", "--quantize", "mxfp4", scratch / "in", scratch / "mid/model.safetensors")
    document, why = converted(scratch / "mid", scratch / "out/model.gguf", "--quantize",
                              "mxfp4:gguf")
    if why:
        yield why
        return
    got = document["tensors"][0]
    keys = "max_abs", "rmse", "nmse", "differing", "compared"
    if [got[k] for k in keys] != [0, 0, 0, 0, x.bits.size]:
        yield f"a copy differs: {got}"


def check_formats(_, scratch):
    """Formats that compare or compress parts while they are written change nothing."""
    weights, _ = schemes.source()
    models.write(scratch / "in", weights, {})
    first, why = converted(scratch / "in", scratch / "out.safetensors", "--quantize", "int4:32")
    for args in (("out.zt", ), ("out.pt", ), ("out.zt", "--compress", "zstd")):
        again, other = converted(scratch / "in", scratch / args[0], "--quantize", "int4:32",
                                 *args[1:])
        why = why or other
        if why or first != again:
            yield why or f"{args}: the numbers depend on the format"
            return


def check_layouts(row, scratch):
    """Layouts of the same numbers have the same quality."""
    plain, other, suffix, name = row
    x = np.random.default_rng(6).normal(0, 1, (2, 64, 128)).astype(np.float32)
    results = []
    other_values = x.swapaxes(1, 2) if "oss" in other else x
    for method, values, end in ((plain, x, ".pt"), (other, other_values, suffix)):
        folder = scratch / method.replace(":", "-")
        models.write(folder, {name: rounded(np.ascontiguousarray(values), "F32")}, {})
        document, why = converted(folder, folder / ("out" + end), "--quantize", method)
        if why:
            yield why
            return
        results.append(document["total"])
    if results[0]["compared"] != x.size or results[0]["rmse"] == 0:
        yield f"measured: {results[0]}"
    yield from differ(other, results[1], results[0])


# ---- blocks of GGUF ---------------------------------------------------------------------------

NAME = "blk.0.ffn_up.weight"


def blocks_of(path, kind, shape):
    """Return the numbers of the tensor NAME, decoded from the bytes that Heft cuts out."""
    data = heft("cat", path, NAME).stdout
    if kind == "q8_0":
        raw = np.frombuffer(data, np.uint8).reshape(-1, 34)
        scale = raw[:, :2].copy().view(np.float16).astype(np.float32)
        return (scale * raw[:, 2:].copy().view(np.int8).astype(np.float32)).reshape(shape)
    return np.array(ggml_blocks.decode(kind, data), np.float32).reshape(shape)


def check_blocks(row, scratch):
    kind, dtype, shape = row
    x = rounded(np.random.default_rng(5).normal(0, 0.05, shape).astype(np.float32), dtype)
    models.write(scratch / "in", {NAME: x}, {})
    out = scratch / "out.gguf"
    args = ("--set", "general.architecture=llama", "--pure", "--quantize", "q8_0", "--quantize",
            f"{NAME}={kind}")
    document, why = converted(scratch / "in/model.safetensors", out, *args)
    if why:
        yield why
        return
    yield from document_differs(document, {NAME: (numbers(x), blocks_of(out, kind, shape))})
    if document["tensors"] and document["tensors"][0]["type_b"] != kind:
        yield f"type_b is {document['tensors'][0]['type_b']}"
    p = heft("convert", "--to", "gguf", "--verify-quality", *args, scratch / "in/model.safetensors",
             "-")
    line = p.stderr.decode().strip().splitlines()[-1]
    rmse = float(line.split("RMSE ")[1].split(",")[0])
    if abs(rmse - document["total"]["rmse"]) > 1e-4 * document["total"]["rmse"]:
        yield f"into a pipe: {line}"


def main():
    np.seterr(all="ignore") # infinite numbers are wanted
    types = [(t, "F32", (5, 512)) for t in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k",
                                            "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "tq1_0",
                                            "tq2_0", "mxfp4", "nvfp4")]
    types += [("q4_k", "BF16", (3, 2304)), ("q8_0", "F16", (7, 1056)), ("q8_0", "F32", (30000, 32)),
              ("q8_0", "F32", (2500, 4128))] # rows that buffers and spans cut
    checks = [(f"{row[0]} is measured", check_scheme, row) for row in schemes.METHODS]
    checks += [(f"runs of {row[0]} that buffers cut", check_cut_runs, (row[0], row[3], row[4]))
               for row in schemes.METHODS
               if row[0] in ("fp8:64x48", "mxfp8", "mxfp4", "int4:32", "int8")]
    checks += [("NaN and infinities", check_nan, None), ("a copy of codes", check_copy, None),
               ("formats that compare or compress", check_formats, None)]
    experts, up = schemes.PREFIX + "mlp.experts.gate_up_proj", "blk.0.ffn_up_exps.weight"
    checks += [(f"{row[1]} is as good as {row[0]}", check_layouts, row)
               for row in (("mxfp4", "mxfp4:gpt-oss", ".pt", experts),
                           ("mxfp4", "mxfp4:gguf", ".gguf", up),
                           ("nvfp4:modelopt", "nvfp4:gguf", ".gguf", up))]
    checks += [(f"{t[0]} from {t[1]} {t[2]} is measured", check_blocks, t) for t in types]
    return tap.report((title, schemes.run(check, row)) for title, check, row in checks)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
