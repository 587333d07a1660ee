"""inputs.py - input files of the bench, made at first use."""
import contextlib
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

from harness import HEFT, MIB, StableMemory, program, read_all, seconds

LAYER = 8  # tensors per layer in bench_make.c
LARGE = 512 * MIB
VOCABULARY = 30522


class Inputs:
    """Files of the temporary directory."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.stable_memory = StableMemory()

    def path(self, name):
        return str(self.directory / name)

    def make(self, name, fmt, layers, rows, columns, *holes):
        path = self.path(name)
        if not os.path.exists(path):
            if program("make", path, fmt, layers, rows, columns, *holes) is None:
                sys.exit(f"{fmt}: no input could be made")
            if not holes:
                self.settle(path)
        return path

    def settle(self, path):
        """Read the file into the page cache; write large files to disk first, so that writeback
        does not disturb the measurement."""
        if os.path.getsize(path) >= LARGE:
            with open(path, "rb") as f:
                os.fsync(f.fileno())
        read_all(path)

    def index(self, fmt, tensors):
        """Make a file of many tensors with two elements each, without payload."""
        return self.make(f"{tensors}.{fmt}", fmt, tensors // LAYER, 1, 2, "holes")

    def model(self, fmt, mib):
        """Make a model of f32 and f16: layers with six matrices of 8 or 16 MiB, or one smaller
        layer."""
        name = f"{mib}MiB.{fmt}"
        if mib < 72:
            return self.make(name, fmt, 1, mib * 1024 // 18, 1024)
        return self.make(name, fmt, mib // 72, 2048, 2048)

    def sparse(self, fmt, size):
        """Make a sparse file of 800 tensors with `size` bytes of payload."""
        layers, rows = 100, 64
        return self.make(f"sparse-{size}.{fmt}", fmt, layers, rows, size // (18 * layers * rows),
                         "holes")

    def drop(self, *paths):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def timed(self, *command, targets):
        """Remove `targets`, then return the seconds of a command that writes one of them."""
        def once():
            self.drop(*targets)
            return seconds(*command)
        return self.stable_memory.run(once)


def formats_written(inputs):
    """Return the formats that can store a model of many tensors, safetensors first."""
    out = subprocess.run([HEFT, "formats", "--json"], check=True, stdout=subprocess.PIPE).stdout
    names = [
        f["name"] for f in json.loads(out)["formats"]
        if f["read"] and f["write"] and f["name"] != "npy"
    ]
    trial = inputs.path("trial")
    names = [name for name in names if program("make", trial, name, 1, 1, 2) is not None]
    inputs.drop(trial)
    return sorted(names, key=lambda name: (name != "safetensors", name))


# ---- safetensors -------------------------------------------------------------------------------


def write_safetensors(path, dtype, shapes, block=None, metadata=None):
    """Write tensors of one element type, name -> shape. The content repeats `block`, which is a MiB
    of random bits unless it is given."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, shape in shapes.items():
        size = {"BF16": 2, "F32": 4}[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = block or os.urandom(MIB)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while at:
            at -= f.write(block[:at])


# ---- GGUF with a vocabulary --------------------------------------------------------------------


def write_gguf(path, tensors, texts):
    """Write a GGUF with `tensors` tensors of two f32 and an array of `texts` texts."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, tensors, 1) + text("tokenizer.ggml.tokens"))
        f.write(
            struct.pack("<IIQ", 9, 8, texts) + b"".join(text(f"token{i}") for i in range(texts)))
        f.write(b"".join(
            text(f"blk.{i // 8}.ffn_down_exps.weight.{i % 8}") +
            struct.pack("<IQIQ", 1, 2, 0, 32 * i) for i in range(tensors)))
        f.write(bytes(-f.tell() % 32))
        f.truncate(f.tell() + 32 * tensors)


# ---- a sentence model --------------------------------------------------------------------------


def sentence_shapes():
    hidden, inner = 384, 1536
    yield "embeddings.word_embeddings.weight", [VOCABULARY, hidden]
    yield "embeddings.position_embeddings.weight", [512, hidden]
    yield "embeddings.token_type_embeddings.weight", [2, hidden]
    norms = ["embeddings.LayerNorm"]
    for i in range(6):
        at = f"encoder.layer.{i}."
        for name, out, into in [("attention.self.query", hidden, hidden),
                                ("attention.self.key", hidden, hidden),
                                ("attention.self.value", hidden, hidden),
                                ("attention.output.dense", hidden, hidden),
                                ("intermediate.dense", inner, hidden),
                                ("output.dense", hidden, inner)]:
            yield f"{at}{name}.weight", [out, into]
            yield f"{at}{name}.bias", [out]
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
    for name in norms:
        yield f"{name}.weight", [hidden]
        yield f"{name}.bias", [hidden]


def write_sentence_model(folder):
    """Write a model folder with the shapes of all-MiniLM-L6-v2; return the path of the weights."""
    os.mkdir(folder)
    weights = folder + "/model.safetensors"
    write_safetensors(weights, "F32", dict(sentence_shapes()))
    words = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"word{i}" for i in range(VOCABULARY - len(words))]
    with open(folder + "/vocab.txt", "w", encoding="utf-8") as out:
        out.writelines(w + "\n" for w in words)
    with open(folder + "/config.json", "w", encoding="utf-8") as out:
        json.dump(
            {
                "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6,
                "num_attention_heads": 12, "max_position_embeddings": 512, "vocab_size": VOCABULARY
            }, out)
    return weights
