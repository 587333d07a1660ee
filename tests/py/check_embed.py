#!/usr/bin/env python3
"""check_embed.py HEFT EMBED: compute sentence vectors from every format.

A small encoder with random weights, as a model folder, is converted to every format that can
represent it. The vectors of examples/embed.c must be the same for each format and equal those
computed here with NumPy. TAP on stdout."""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    np = None

HIDDEN, INNER, LAYERS, HEADS, POSITIONS = 24, 40, 2, 4, 16
TOKENS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "quick", "brown", "fox", "jump", "##s",
    "##ed", "over", "a", "la", "##zy", "dog", ".", ",", "!", "##e", "caf", "##é", "un", "##known",
    "word", "-"
]
TEXTS = [
    "The quick brown fox jumps over the lazy dog.", "a dog", "jumped, jumps, JUMPED!",
    "café unknown zebra-word", "", "the " * 40, "x" * 120 + " fox"
]
CLOSE = 2e-6


# ---- the model ----

def weights():
    rng = np.random.default_rng(7)

    def random(*shape):
        return rng.standard_normal(shape).astype(np.float32) * np.float32(0.3)

    w = {"embeddings.word_embeddings.weight": random(len(TOKENS), HIDDEN),
         "embeddings.position_embeddings.weight": random(POSITIONS, HIDDEN),
         "embeddings.token_type_embeddings.weight": random(2, HIDDEN)}

    def norm(name):
        w[name + ".weight"], w[name + ".bias"] = 1 + random(HIDDEN), random(HIDDEN)

    norm("embeddings.LayerNorm")
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        for name, out, into in [("attention.self.query", HIDDEN, HIDDEN),
                                ("attention.self.key", HIDDEN, HIDDEN),
                                ("attention.self.value", HIDDEN, HIDDEN),
                                ("attention.output.dense", HIDDEN, HIDDEN),
                                ("intermediate.dense", INNER, HIDDEN),
                                ("output.dense", HIDDEN, INNER)]:
            w[at + name + ".weight"], w[at + name + ".bias"] = random(out, into), random(out)
        norm(at + "attention.output.LayerNorm")
        norm(at + "output.LayerNorm")
    return w


def write_folder(folder, w):
    header, blob = {}, b""
    stored = {"bert.embeddings.position_ids": np.arange(POSITIONS, dtype="<i8")[None],
              **{"bert." + n: a for n, a in w.items()}}
    for name, a in stored.items():
        data = a.tobytes()
        header[name] = {"dtype": "I64" if a.dtype.kind == "i" else "F32", "shape": a.shape,
                        "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + blob)
    (folder / "vocab.txt").write_text("".join(t + "\n" for t in TOKENS), encoding="utf-8")
    (folder / "config.json").write_text(
        json.dumps({
            "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "intermediate_size": INNER, "max_position_embeddings": POSITIONS,
            "vocab_size": len(TOKENS)
        }))


# ---- the same computation, by NumPy in f64 ----

def pieces(word):
    found, at = [], 0
    while at < len(word):
        for end in range(len(word), at, -1):
            piece = ("##" if at else "") + word[at:end]
            if piece in TOKENS:
                break
        else:
            return ["[UNK]"]
        found.append(piece)
        at = end
    return found if len(word.encode()) <= 100 else ["[UNK]"]


def token_ids(text):
    words, word = [], ""
    for c in text.lower():
        if c.isspace() or (c.isascii() and not c.isalnum()):
            words += [word] * bool(word) + [c] * (not c.isspace())
            word = ""
        else:
            word += c
    words += [word] * bool(word)
    ids = ["[CLS]", *(p for w in words for p in pieces(w))]
    return [TOKENS.index(t) for t in ids[:POSITIONS - 1] + ["[SEP]"]]


def layer_norm(w, name, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-12) * w[name + ".weight"] + w[name + ".bias"]


def encode(w, text):
    ids = token_ids(text)
    w = {n: a.astype(np.float64) for n, a in w.items()}
    x = (w["embeddings.word_embeddings.weight"][ids] +
         w["embeddings.position_embeddings.weight"][:len(ids)] +
         w["embeddings.token_type_embeddings.weight"][0])
    x = layer_norm(w, "embeddings.LayerNorm", x)
    erf = np.vectorize(math.erf)
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."

        def linear(name, y, at=at):
            return y @ w[at + name + ".weight"].T + w[at + name + ".bias"]

        q, k, v = (linear(f"attention.self.{n}", x).reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
                   for n in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ v
        x = layer_norm(
            w, at + "attention.output.LayerNorm",
            x + linear("attention.output.dense",
                       mixed.transpose(1, 0, 2).reshape(len(ids), HIDDEN)))
        inner = linear("intermediate.dense", x)
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = layer_norm(w, at + "output.LayerNorm", x + linear("output.dense", inner))
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


# ---- comparing ----

def run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return p.stdout, [f"{command[0]} ended with {p.returncode}: {p.stderr.strip()}"
                      ] if p.returncode else []


def compare(w, out):
    lines = [np.array([float(v) for v in line.split()]) for line in out.splitlines()]
    if len(lines) != len(TEXTS):
        yield f"{len(lines)} vectors for {len(TEXTS)} texts"
    for text, got in zip(TEXTS, lines):
        worst = np.abs(got - encode(w, text)).max()
        if not worst < CLOSE:
            yield f"{text[:30]!r}: off by {worst}"


def formats():
    out, _ = run(HEFT, "formats", "--json")
    # an .npy file has a single tensor
    return [
        f["name"] for f in json.loads(out)["formats"]
        if f["read"] and f["write"] and f["name"] != "npy"
    ]


def checks(scratch):
    w, folder, first = weights(), scratch / "tiny", scratch / "tiny.weights"
    write_folder(folder, w)
    yield "the folder is converted", run(HEFT, "convert", folder, first)[1]
    yield "the converted file verifies", run(HEFT, "verify", first)[1]
    same, wrong = run(EMBED, first, *TEXTS)
    yield "vectors from .weights equal those of NumPy", wrong or list(
        compare(w, same))
    options = ["--vocab", folder / "vocab.txt", "--heads", HEADS]
    out, wrong = run(EMBED, *options, folder / "model.safetensors", *TEXTS)
    yield "vectors from the source safetensors are equal", wrong or (
        [] if out == same else ["they differ"])
    for name in formats():
        other = scratch / f"as {name}"
        _, wrong = run(HEFT, "convert", "--to", name, first, other)
        if not wrong:
            out, wrong = run(EMBED, *options, other, *TEXTS)
        yield f"vectors from {name} are equal", wrong or ([] if out == same else ["they differ"])
    simple = scratch / "simple.weights"
    _, wrong = run(HEFT, "convert", "--format-version", "simple", first, simple)
    if not wrong:
        out, wrong = run(EMBED, "--heads", HEADS, simple, *TEXTS)
    yield "vectors from the simple stream are equal", wrong or (
        [] if out == same else ["they differ"])


def main():
    if np is None:
        print("1..0 # SKIP there is no NumPy")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(checks(pathlib.Path(scratch)))


HEFT, EMBED = sys.argv[1:]
sys.exit(main())
