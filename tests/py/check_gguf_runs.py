#!/usr/bin/env python3
"""check_gguf_runs.py HEFT DIR [NAME]: GGUF files of `heft convert --map auto` in llama.cpp.

DIR has the library of llama.cpp and the tokenizers of Hugging Face, as npm ships them. Small models
of each architecture are converted: the numbers that llama.cpp computes are those of a forward pass
in numpy over the source weights, to a thousandth of the largest. Small tokenizers are converted:
the ids are those that the library of the tokenizer makes of 200 texts. Back: the weights, the
settings, and the ids of the tokenizer.json that Heft makes. NAME is one model or tokenizer. TAP on
stdout."""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata

import llama_library
import made_models
import made_mxfp4
import made_tokenizers
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

CLOSE = 1e-3
CLOSE_IN_F16 = 1e-2  # llama.cpp rounds what it multiplies with weights of 16 bits, too
CLOSE_TO_BLOCKS = 8e-2


def has_marks(text):
    return any(unicodedata.category(c).startswith("M") for c in unicodedata.normalize("NFD", text))


def has_camel_case(text):
    return re.search("[a-z][A-Z]", text)


def has_letters_like_numbers(text):
    """Bytes whose letters are numbers, such as the one half, are digits for a later step."""
    return set(text.encode()) & set(b"\xb2\xb3\xb9\xbc\xbd\xbe")


def has_marks_or_camel_case(text):
    return has_marks(text) or has_camel_case(text)


# Texts that llama.cpp splits otherwise than the definitions: before combining marks, which it also
# keeps, and not between small and capital letters; digits before bytes have become letters.
OTHERWISE = {"gpt-4o": has_marks, "tekken": has_marks, "bert": has_marks,
             "kimi-k2": has_marks_or_camel_case, "tiny_aya": has_camel_case,
             "youtu": has_camel_case, "falcon": has_letters_like_numbers}


def weights_file(weights):
    header, data = {}, b""
    for k, v in weights.items():
        is_byte = v.dtype == np.uint8
        raw = v.tobytes() if is_byte else v.astype("<f4").tobytes()
        header[k] = {"dtype": "U8" if is_byte else "F32", "shape": list(v.shape),
                     "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_weights(path):
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {k: np.frombuffer(raw[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]],
                             "<f4").reshape(t["shape"]) for k, t in header.items()}


class Check:
    def __init__(self, heft, directory, temporary):
        self.heft, self.npm = heft, directory
        self.llama = llama_library.open_llama(directory)
        self.dir = pathlib.Path(temporary)

    def convert(self, source, target, *options):
        command = [self.heft, "convert", "-qf", "--map", "auto", *options, source, target]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip())

    def folder(self, name, config, weights):
        folder = self.dir / name
        made_tokenizers.write(folder, "config.json", config)
        made_tokenizers.write(folder, "model.safetensors", weights_file(weights))
        return folder

    def ids(self, jobs):
        """Return the ids of the library of the tokenizers for (folder, texts) pairs."""
        script = pathlib.Path(__file__).parents[1] / "js/tokenize.mjs"
        request = [{"tokenizer": str(f / "tokenizer.json"), "special": True, "texts": t}
                   for f, t in jobs]
        done = subprocess.run(["node", script, self.npm], input=json.dumps(request), text=True,
                              capture_output=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip()[-300:])
        return json.loads(done.stdout)

    # ---- models ----

    def model(self, kind, cast=None):
        """Return what is wrong with a model of that kind; none: nothing."""
        tokenizer = made_tokenizers.byte_level("gpt-2")
        vocab = len(tokenizer["model"]["vocab"]) + 6  # rows without a token, too
        if kind == "bert":
            tokenizer = made_tokenizers.wordpiece()
            vocab = len(tokenizer["model"]["vocab"])
        model = made_models.Model(kind, vocab)
        ids = [int(i) for i in np.random.default_rng(2).integers(0, vocab - 8, 12)]
        want = model.forward(ids)
        folder = self.folder(kind, model.c, model.weights)
        made_tokenizers.write(folder, "tokenizer.json", tokenizer)
        target = self.dir / f"{kind}.gguf"
        self.convert(folder, target, *(["--cast", cast, "-f"] if cast else []))
        loaded = llama_library.Model(self.llama, target)
        got = loaded.run(ids, embeddings=kind == "bert")
        loaded.close()
        worst = float(np.abs(got - want).max() / max(1, np.abs(want).max()))
        if not worst < (CLOSE_IN_F16 if cast else CLOSE):
            return [f"numbers differ by {worst:.2g} of {np.abs(want).max():.2g}"]
        return [] if cast else self.back(kind, folder, target)

    def quantised(self):
        """Experts in MXFP4 keep their blocks."""
        kind, tokenizer = "gpt_oss", made_tokenizers.byte_level("gpt-2")
        model = made_models.Model(kind, len(tokenizer["model"]["vocab"]) + 6)
        model.c["num_experts_per_tok"] = 4  # all: a rounded number chooses no other expert
        model.forward([1])
        stored = dict(model.weights)
        for i, (name, shape) in enumerate([(k, v.shape) for k, v in stored.items()
                                           if k.endswith(("gate_up_proj", "down_proj"))]):
            made = made_mxfp4.Experts(shape[0], shape[2], shape[1], i, (122, 125))
            model.weights[name] = made.numbers()
            del stored[name]
            stored[name + "_blocks"], stored[name + "_scales"] = made.blocks(), made.powers
        ids = [int(i) for i in np.random.default_rng(2).integers(0, 500, 12)]
        want = model.forward(ids)
        folder = self.folder("mxfp4", model.c, stored)
        made_tokenizers.write(folder, "tokenizer.json", tokenizer)
        target = self.dir / "mxfp4.gguf"
        self.convert(folder, target)
        loaded = llama_library.Model(self.llama, target)
        worst = float(np.abs(loaded.run(ids) - want).max() / np.abs(want).max())
        loaded.close()
        # The library rounds what it multiplies with blocks to 8 bits.
        return [] if worst < CLOSE_TO_BLOCKS else [f"numbers differ by {worst:.2g}"]

    def back(self, kind, folder, target):
        """Compare the weights that come back with those that were converted."""
        again = self.dir / f"{kind}-back"
        self.convert(target, f"{again}/")
        before, after = (read_weights(f / "model.safetensors") for f in (folder, again))
        wrong = [f"tensor {k} does not come back" for k in before.keys() ^ after.keys()]
        wrong += [f"tensor {k} differs" for k in before.keys() & after.keys()
                  if before[k].shape != after[k].shape
                  or not np.allclose(before[k], after[k], rtol=0, atol=ROUNDED.get(kind, 0))]
        config = json.loads((again / "config.json").read_text(encoding="utf-8"))
        source = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return wrong + [f"config.json: {k} is {v!r}, not {source[k]!r}" for k, v in config.items()
                        if k in source and source[k] != v and k not in LOST.get(kind, ())]

    # ---- tokenizers ----

    def tokenizers(self, names):
        texts = made_tokenizers.texts()
        jobs, lists = [], []
        for name in names:
            folder, library = self.tokenizer_folder(name)
            mine = [t for t in texts if name not in OTHERWISE or not OTHERWISE[name](t)]
            if name in KEEPING_SPACES:  # SentencePiece adds a space also before a space
                mine = [t for t in mine if not t[:1].isspace()]
            lists.append((name, folder, mine))
            jobs.append((library, mine))
        for (name, folder, mine), want in zip(lists, self.ids(jobs)):
            try:
                yield name, self.compare_ids(name, folder, mine, want)
            except ValueError as e:
                yield name, [str(e)]

    def tokenizer_folder(self, name):
        """Return a folder with the tokenizer, and one with the tokenizer.json of its library."""
        write = made_tokenizers.write
        kind = "bert" if name.startswith("bert") else "llama"
        folder = self.dir / f"tokenizer {name}"
        library = self.dir / f"library {name}"
        made = TOKENIZERS[name]()
        write(library, "tokenizer.json", made)
        if name == "tokenizer.model":
            rows, _ = made_tokenizers.pieces()
            write(folder, "tokenizer.model", made_tokenizers.sentencepiece(rows))
        elif name == "tokenizer.model of Unigram":
            write(folder, "tokenizer.model",
                  made_tokenizers.sentencepiece(made_tokenizers.unigram_pieces(), model=1))
        elif name == "vocab.json":
            write(folder, "vocab.json", made["model"]["vocab"])
            write(folder, "merges.txt", "#version: 0.2\n" + "\n".join(made["model"]["merges"]))
            write(folder, "added_tokens.json",
                  {t["content"]: t["id"] for t in made["added_tokens"]})
            write(folder, "tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"})
        else:
            write(folder, "tokenizer.json", made)
        vocab = made["model"]["vocab"]
        model = made_models.Model(kind, len(vocab) + 2)
        model.forward([1])
        self.folder(folder.name, model.c, model.weights)
        return folder, library

    def compare_ids(self, name, folder, texts, want):
        target = self.dir / f"{name}.gguf"
        self.convert(folder, target)
        loaded = llama_library.Model(self.llama, target, vocab_only=True)
        got = [loaded.tokens(t) for t in texts]
        loaded.close()
        wrong = [f"{t!r}: {g} instead of {w}" for t, g, w in zip(texts, got, want) if g != w]
        is_byte_level = name in made_tokenizers.STEPS or name in made_tokenizers.MORE_STEPS
        if wrong or not is_byte_level or name == "deepseek-llm":
            return wrong
        again = self.dir / f"{name}-back"
        self.convert(target, f"{again}/")
        back = self.ids([(again, texts)])[0]
        return [f"back, {t!r}: {g} instead of {w}" for t, g, w in zip(texts, back, want) if g != w]


KEEPING_SPACES = ("tokenizer.model of Unigram", "Unigram")
TOKENIZERS = {
    **{n: lambda n=n: made_tokenizers.byte_level(n, merges_as_lists=n in ("qwen2", "llama-bpe"))
       for n in made_tokenizers.STEPS},
    **{n: lambda n=n: made_tokenizers.byte_level(n) for n in made_tokenizers.MORE_STEPS},
    "vocab.json": lambda: made_tokenizers.byte_level("qwen2"),
    "bytes and pieces": made_tokenizers.bytes_and_pieces,
    "without a space before": lambda: made_tokenizers.bytes_and_pieces(False),
    "tokenizer.model": made_tokenizers.bytes_and_pieces,
    "tokenizer.model of Unigram": made_tokenizers.unigram,
    "Unigram": made_tokenizers.unigram,
    "Unigram with characters": made_tokenizers.unigram_with_characters,
    "Unigram of newer versions": lambda: made_tokenizers.unigram_with_characters(True),
    "bert": made_tokenizers.wordpiece,
    "bert with capitals": lambda: made_tokenizers.wordpiece(False),
}
# Models with vectors, rotary factors, positions and norms that --cast must leave in f32.
CAST = ("llama", "gemma2", "gpt2", "bert")
# A number that is added and taken away again rounds the weights.
ROUNDED = {"gemma": 1e-6, "gemma2": 1e-6, "gemma3_text": 1e-6}
# Settings that several values of make the same GGUF file.
LOST = {"mistral": ["model_type"], "gpt2": ["n_inner"], "bert": ["tie_word_embeddings"]}


def main():
    heft, directory, *names = sys.argv[1:]
    directory = pathlib.Path(directory).resolve()  # a module of Node is looked up from there
    if llama_library.open_llama(directory) is None:
        print("1..0 # SKIP npm has no llama.cpp for this machine")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        check = Check(heft, directory, temporary)
        rows = []
        for kind in made_models.CONFIGS:
            if names and kind not in names:
                continue
            try:
                rows.append((f"model {kind}", check.model(kind)))
            except ValueError as e:
                rows.append((f"model {kind}", [str(e)]))
        for kind in CAST if not names else ():
            try:
                rows.append((f"model {kind} after --cast", check.model(kind, "*.weight=f16")))
            except ValueError as e:
                rows.append((f"model {kind} after --cast", [str(e)]))
        if not names:
            rows.append(("model gpt_oss with experts in MXFP4", check.quantised()))
        if not (pathlib.Path(directory) / "node_modules/tokenizers").exists():
            rows.append(("tokenizers # SKIP npm has no library of tokenizers here", []))
            return tap.report(rows)
        for name, wrong in check.tokenizers([n for n in TOKENIZERS if not names or n in names]):
            rows.append((f"tokenizer {name}", wrong[:4]))
    return tap.report(rows)


if __name__ == "__main__":
    sys.exit(main())
