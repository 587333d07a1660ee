#!/usr/bin/env python3
"""check_lora_extract.py HEFT: judge `heft convert --extract-lora` by the singular values of NumPy.

The adapter must leave hardly more of the difference than the best one of its rank, Heft must state
what it leaves, and merging the adapter must lead from one model to the other. TAP on stdout."""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import quantised_models as models
from check_lora import drawn, heft, HEFT, PEFT, stored, value

RANK = 4
USAGE, INVALID, UNSUPPORTED = 2, 3, 5


def low_rank(name, rows, columns, rank, noise):
    return (drawn(name + "u", (rows, rank)) @ drawn(name + "v", (rank, columns)) * 0.1 +
            drawn(name + "n", (rows, columns)) * noise)


WEIGHTS = { # name: shape, rank of the difference, noise
    "model.embed_tokens.weight": ((50, 24), 2, 0.001),
    "model.q.weight": ((96, 64), 4, 0.0), # exactly of the rank
    "model.k.weight": ((64, 300), 8, 0.01),
    "model.wide.weight": ((3, 70001), 2, 0.001), # a row exceeds a strip; less rows than the rank
    "model.tall.weight": ((40000, 8), 3, 0.01),
    "model.full.weight": ((80, 90), 80, 0.0),
}


def pair(dtype="F32"):
    base = {n: drawn(n, s) for n, (s, _, _) in WEIGHTS.items()}
    tuned = {n: base[n] + low_rank(n, *s, r, noise).astype(np.float32)
             for n, (s, r, noise) in WEIGHTS.items()}
    base["model.norm.weight"] = drawn("norm", (24, ))
    tuned["model.norm.weight"] = base["model.norm.weight"] + 1
    base["model.same.weight"] = tuned["model.same.weight"] = drawn("same", (8, 8))
    return tuple({n: stored(w, dtype) for n, w in m.items()} for m in (base, tuned))


def write_pair(folder, dtype="F32"):
    base, tuned = pair(dtype)
    (folder / "base.safetensors").write_bytes(models.pack(base))
    (folder / "tuned.safetensors").write_bytes(models.pack(tuned))
    return base, tuned


def extract(folder, *options):
    return heft("convert", "--extract-lora", RANK, "--base", folder / "base.safetensors", *options,
                folder / "tuned.safetensors", folder / "adapter")


def product(adapter, name):
    module = PEFT + name.removesuffix(".weight")
    if name == "model.embed_tokens.weight":
        return (adapter[module + ".lora_embedding_B"] @ adapter[module + ".lora_embedding_A"]).T
    return adapter[module + ".lora_B.weight"] @ adapter[module + ".lora_A.weight"]


def check_results(dtype):
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        base, tuned = write_pair(folder, dtype)
        ran = extract(folder, "--json", "--quiet")
        if ran.returncode:
            return [ran.stderr]
        found = models.unpack(folder / "adapter" / "adapter_model.safetensors")
        adapter = {n: value(t).astype(np.float64) for n, t in found.items()}
        stated = json.loads(ran.stdout)
        rows = {r["name"]: r for r in stated["extracted"]}
        squares, left = 0.0, 0.0
        for name in WEIGHTS:
            d = value(tuned[name]).astype(np.float64) - value(base[name])
            norm, rank = np.linalg.norm(d), min(RANK, *d.shape)
            best = np.linalg.norm(np.linalg.svd(d, compute_uv=False)[rank:])
            got = np.linalg.norm(d - product(adapter, name))
            squares, left = squares + norm**2, left + got**2
            row = rows[name]
            if got > best * 1.02 + norm * 1e-5:
                complaints.append(f"{name}: leaves {got}, the best is {best}, of {norm}")
            if abs(row["difference"] - norm) > 1e-5 * norm:
                complaints.append(f"{name}: a difference of {norm}, stated {row['difference']}")
            if abs(row["remainder"] - got) > 1e-5 * norm:
                complaints.append(f"{name}: {got} are left, stated {row['remainder']}")
            complaints += [f"{name}: rank {row['rank']}"] if row["rank"] != rank else []
        relative = np.sqrt(left / squares)
        if abs(stated["total"]["relative"] - relative) > 1e-5:
            complaints.append(f"in all {relative} are left, stated {stated['total']}")
        if rows["model.norm.weight"].get("reason") != "not a matrix" or "model.same.weight" in rows:
            complaints.append(f"{sorted(rows)}")
    return complaints


def check_merge():
    """Merging the adapter leads back to the tuned model, except for what the adapter leaves."""
    complaints = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        _, tuned = write_pair(folder)
        complaints += [extract(folder).stderr] if extract(folder).returncode not in (0, 2) else []
        settings = json.loads((folder / "adapter" / "adapter_config.json").read_text())
        ran = heft("convert", "--lora", folder / "adapter", folder / "base.safetensors",
                   folder / "merged.safetensors")
        if ran.returncode:
            return [ran.stderr]
        got = value(models.unpack(folder / "merged.safetensors")["model.q.weight"])
        if np.abs(got - value(tuned["model.q.weight"])).max() > 1e-5:
            complaints.append("q differs")
        if (settings["r"], settings["lora_alpha"], settings["peft_type"]) != (RANK, RANK, "LORA"):
            complaints.append(f"{settings}")
        if settings["rank_pattern"] != {"model.wide": 3}:
            complaints.append(f"{settings['rank_pattern']}")
    return complaints


def check_same():
    """The bytes do not depend on threads and formats."""
    found = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        write_pair(folder)
        heft("convert", "--compress", "zstd", folder / "tuned.safetensors", folder / "tuned.zt")
        for name, options in (("tuned.safetensors", ["--threads", "1"]),
                              ("tuned.safetensors", ["--threads", "8"]), ("tuned.zt", [])):
            out = folder / f"adapter{len(found)}"
            ran = heft("convert", "--extract-lora", RANK, "--base", folder / "base.safetensors",
                       "--quiet", *options, folder / name, out)
            if ran.returncode:
                return [ran.stderr]
            found.append(models.unpack(out / "adapter_model.safetensors"))
    return [f"{name} differs" for name, t in found[0].items() for other in found[1:]
            if not np.array_equal(t.bits, other[name].bits)]


def refusals():
    yield "the models are equal", ["tuned.safetensors", "--base",
                                   "tuned.safetensors"], USAGE, "equal"
    yield "a NaN", ["nan.safetensors", "--base", "base.safetensors",
                    "--allow-nan"], UNSUPPORTED, "has such numbers, and no adapter"
    yield "no base", ["tuned.safetensors"], USAGE, "needs --base"
    yield "a rank of 0", ["tuned.safetensors", "--base", "base.safetensors", "--extract-lora",
                          "0"], USAGE, "--extract-lora"
    yield "another format", ["tuned.safetensors", "--base", "base.safetensors", "--to",
                             "gguf"], USAGE, "excludes"
    yield "with --strict a norm is an error", ["tuned.safetensors", "--base", "base.safetensors",
                                               "--strict"], UNSUPPORTED, "is not in the adapter"


def check_refusal(options, code, words):
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        _, broken = write_pair(folder)
        shape = WEIGHTS["model.q.weight"][0]
        broken["model.q.weight"] = stored(np.full(shape, np.nan, np.float32), "F32")
        (folder / "nan.safetensors").write_bytes(models.pack(broken))
        paths = [folder / o if o.endswith(".safetensors") else o for o in options]
        ran = heft("convert", "--extract-lora", RANK, *paths, folder / "adapter")
        complaints = [f"status {ran.returncode}"] if ran.returncode != code else []
        complaints += [] if words in ran.stderr else [ran.stderr]
        complaints += ["there is an output"] if (folder / "adapter").exists() else []
    return complaints


def main():
    results = [(f"matrices of {dtype} are nearly the best", check_results(dtype))
               for dtype in ("F32", "BF16")]
    results += [("the adapter is merged", check_merge()), ("the bytes are the same", check_same())]
    results += [(f"refused: {title}", check_refusal(*row)) for title, *row in refusals()]
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
