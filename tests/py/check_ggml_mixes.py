#!/usr/bin/env python3
"""check_ggml_mixes.py HEFT DIR [--full] [MODEL]: quantise small models with Heft and llama.cpp.

DIR has llama.cpp's library as npm ships it. Whole files are compared: every tensor has the same
type and bytes, and the metadata are the same. MODEL is one of them, for a part of the check. The
matrices of layers have few rows, and some models take only the mixes whose rules they reach;
--full: whole matrices, and each model takes all. TAP on stdout."""
import pathlib
import subprocess
import sys
import tempfile

import ggml_mixes
import gguf_models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

MIXES = {"q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11,
         "q3_k_m": 12, "q3_k_l": 13, "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17,
         "q6_k": 18, "q2_k_s": 21, "iq4_nl": 25, "iq4_xs": 30, "tq1_0": 36, "tq2_0": 37,
         "mxfp4_moe": 38, "q1_0": 40, "q2_0": 41, "f16": 1, "bf16": 32}
MODELS = {
    "llama": {"arch": "llama", "kv_heads": 2},
    "llama, heads that share keys": {"arch": "llama", "layers": 9, "kv_heads": 1},
    "qwen2": {"arch": "qwen2", "layers": 17, "kv_heads": 4},
    "gemma, tied": {"arch": "gemma", "tied": True},
    "falcon": {"arch": "falcon", "fused": True, "layers": 16},
    "eight experts, odd widths": {"arch": "llama", "experts": 8, "hidden": 288, "layers": 8},
    "four experts": {"arch": "qwen3moe", "experts": 4, "layers": 8},
    "odd widths": {"arch": "llama", "width": 288, "heads": 4, "hidden": 320, "layers": 8},
    "80 layers": {"arch": "llama", "layers": 80, "heads": 4, "kv_heads": 2, "hidden": 256},
    "qwen2 of 80 layers": {"arch": "qwen2", "layers": 80, "kv_heads": 4, "hidden": 256},
}
# Mixes whose types depend on the layer, and on the shape of the model.
RULED = ("q2_k", "q2_k_s", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m",
         "iq4_nl", "iq4_xs", "mxfp4_moe")
# Models large enough that all mixes together take minutes: the mixes whose rules they reach.
FEW = {"80 layers": ("q2_k", "q2_k_s", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m", "iq4_xs"),
       "qwen2 of 80 layers": ("q3_k_s", "q4_k_m")}
# The other mixes, and importance, would repeat what they show with llama, unless --full is given.
RULES_ONLY = {"llama, heads that share keys": RULED, "qwen2": RULED, "falcon": RULED,
              "eight experts, odd widths": (*RULED, "q4_0", "q5_0", "q8_0")}
# Words of both messages where both programs refuse, or one alone for a good reason.
REFUSALS = [
    ("needs the importance of columns", "importance matrix"),
    ("", "no tensor type fallback"),  # Heft writes f16 where no type has smaller blocks.
]
OPTIONS = [
    ("q4_k_m", ["--pure"], {"pure": True}),
    ("q4_k_m", ["--leave-output-tensor"], {"quantize_output": False}),
    ("q4_k_m", ["--output-tensor-type", "q8_0", "--token-embedding-type", "Q5_0"],
     {"output": 8, "embedding": 6}),
    ("q4_k_m", ["--tensor-type", r"blk\.[0-3]\.ffn_up=q8_0", "--tensor-type", "attn_v=Q5_K"],
     {"overrides": [(r"blk\.[0-3]\.ffn_up", 8), ("attn_v", 13)]}),
    ("q5_0", ["--tensor-type", "ffn_(up|down)=q4_0"], {"overrides": [("ffn_(up|down)", 2)]}),
]


class Check:
    def __init__(self, heft, directory, temporary, full):
        self.few = FEW if full else FEW | RULES_ONLY
        self.shape = {} if full else {"hidden": 256, "rows": 32}
        self.heft, self.llama = heft, ggml_mixes.Llama(directory)
        self.dir = pathlib.Path(temporary)

    def convert(self, source, target, *options):
        done = subprocess.run([self.heft, "convert", "-f", *options, source, target],
                              capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    def differences(self, mix, options=(), own_meta=None, **judged):
        """Return what differs between the files of both programs. own_meta: what only Heft adds to
        the metadata."""
        source, ours, theirs = (str(self.dir / n) for n in ("in.gguf", "ours.gguf", "theirs.gguf"))
        failed, refused = self.convert(source, ours, "--quantize", mix, *options), ""
        try:
            self.llama.quantize(source, theirs, MIXES[mix], **judged)
        except ValueError as error:
            refused = str(error)
        if failed or refused:
            return differing_refusals(failed, refused)
        ours, theirs = gguf_models.Reader(ours), gguf_models.Reader(theirs)
        expected = {**theirs.meta, **(own_meta or {})}
        if ours.meta != expected:
            return f"metadata differ: {set(ours.meta.items()) ^ set(expected.items())}"
        if set(ours.tensors) != set(theirs.tensors):
            return "tensors differ"
        for name, (shape, kind, data) in theirs.tensors.items():
            own_shape, own_kind, own_data = ours.tensors[name]
            if (own_shape, own_kind) != (shape, kind):
                return f"{name} is {own_kind} {own_shape}, not {kind} {shape}"
            if own_data != data:
                return f"{name}: the bytes of {kind} differ"
        return None

    def model(self, name):
        meta, tensors = gguf_models.model(**{**self.shape, **MODELS[name]})
        gguf_models.write(self.dir / "in.gguf", meta, tensors)
        return tensors


def differing_refusals(failed, refused):
    """Return how the refusals of both programs differ, or None."""
    for ours, theirs in REFUSALS:
        if ours in failed and theirs in refused and bool(ours) == bool(failed):
            return None
    return f"only llama.cpp refuses: {refused[-300:]}" if refused and not failed else failed


def with_importance(check, tensors, old):
    entries = gguf_models.importance(tensors)
    path = str(check.dir / ("imatrix.dat" if old else "imatrix.gguf"))
    if old:  # An entry has one count.
        entries = {n: (s, c * 0 + c[0, 0]) for n, (s, c) in entries.items()}
        gguf_models.write_old_importance(path, entries)
    else:
        gguf_models.write_importance(path, entries)
    return path, entries


def main():
    full, chosen = "--full" in sys.argv, [a for a in sys.argv[3:] if a != "--full"]
    if not (pathlib.Path(sys.argv[2]) / ggml_mixes.BINS).exists():
        print("1..0 # SKIP npm has no llama.cpp for this machine")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        check = Check(sys.argv[1], sys.argv[2], temporary, full)
        rows = []
        for name in chosen or MODELS:
            tensors = check.model(name)
            mixes = [m for m in MIXES if m in check.few.get(name, MIXES)]
            found = [f"{m}: {d}" for m in mixes if (d := check.differences(m))]
            rows.append((f"{name}: {len(mixes)} mixes", found))
            if name in check.few:
                continue
            for old in (False, True):
                path, entries = with_importance(check, tensors, old)
                own = {"file": path, "dataset": "wiki.txt", "entries_count": len(entries),
                       "chunks_count": 7}
                own = {f"quantize.imatrix.{k}": v for k, v in own.items()}
                given = ("--imatrix", path)
                found = [f"{m}: {d}" for m in ("q4_0", "q5_0", "q2_k_s", "q4_k_m", "iq4_xs")
                         if (d := check.differences(m, given, own, importance=entries))]
                rows.append((f"{name}, with {pathlib.Path(path).name}", found))
        check.model("llama")
        found = [f"{m} {' '.join(o)}: {d}" for m, o, j in OPTIONS
                 if (d := check.differences(m, o, None, **j))]
        rows.append(("options", found))
    return tap.report(rows)


if __name__ == "__main__":
    sys.exit(main())
