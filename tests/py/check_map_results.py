#!/usr/bin/env python3
"""check_map_results.py HEFT: what maps make of quantised weights, of tied ones and of vocabularies
of another size, byte by byte as numpy computes it.  TAP on stdout."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

from checks import read_safetensors
import gguf_models
import made_mxfp4

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DTYPES = {"float32": "F32", "float16": "F16", "uint8": "U8", "uint16": "BF16"}


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


def write(path, arrays):
    """Write arrays to safetensors; uint16 stands for bf16."""
    header, blobs, at = {}, [], 0
    for name, a in arrays.items():
        blobs.append(np.ascontiguousarray(a).tobytes())
        header[name] = {"dtype": DTYPES[str(a.dtype)], "shape": list(a.shape),
                        "data_offsets": [at, at + len(blobs[-1])]}
        at += len(blobs[-1])
    text = json.dumps(header).encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def expected(arrays):
    return {k: (DTYPES[str(a.dtype)], a.shape, np.ascontiguousarray(a).tobytes())
            for k, a in arrays.items()}


def differences(got, wanted):
    return [f"{k} is missing" for k in wanted if k not in got] + \
        [f"{k} is not expected" for k in got if k not in wanted] + \
        [f"{k}: {got[k][:2]} instead of {w[:2]}, or other bytes" for k, w in wanted.items()
         if k in got and got[k] != w]


# ---- MXFP4 ----

EXPERTS, WIDTH, INNER = 3, 64, 96


def gpt_oss(folder, powers=(0, 255)):
    """Write a model with one layer, and return the weights of its experts."""
    up = made_mxfp4.Experts(EXPERTS, 2 * INNER, WIDTH, 1, powers)
    down = made_mxfp4.Experts(EXPERTS, WIDTH, INNER, 2, powers)
    at = "model.layers.0.mlp.experts."
    numbers = np.arange(10 * WIDTH, dtype=np.float32).reshape(10, WIDTH)
    write(folder / "model.safetensors", {
        "model.embed_tokens.weight": numbers, "lm_head.weight": numbers + 1,
        "model.norm.weight": numbers[0],
        at + "gate_up_proj_blocks": up.blocks(), at + "gate_up_proj_scales": up.powers,
        at + "down_proj_blocks": down.blocks(), at + "down_proj_scales": down.powers})
    config = {"model_type": "gpt_oss", "num_hidden_layers": 1, "hidden_size": WIDTH,
              "intermediate_size": INNER, "num_attention_heads": 4, "num_key_value_heads": 2,
              "head_dim": 16, "num_local_experts": EXPERTS, "num_experts_per_tok": 2,
              "vocab_size": 10, "max_position_embeddings": 128, "sliding_window": 4,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
              "quantization_config": {"quant_method": "mxfp4"}}
    (folder / "config.json").write_text(json.dumps(config))
    return up, down


def check_mxfp4(folder):
    up, down = gpt_oss(folder)
    p = heft("convert", "-n", "--map", "auto", "--cast", "bf16", folder, folder / "m.gguf")
    if "same numbers, unless --cast decodes them" not in p.stderr:
        return [p.stderr]
    for options in ([], ["--access=read"]):
        p = heft("convert", "-f", "--map", "auto", *options, folder, folder / "m.gguf")
        if p.returncode:
            return [p.stderr]
        got = gguf_models.Reader(folder / "m.gguf").tensors
        wanted = {"gate": (INNER, WIDTH, up.gguf(np.s_[::2])), "up": (INNER, WIDTH,
                                                                     up.gguf(np.s_[1::2])),
                  "down": (WIDTH, INNER, down.gguf(np.s_[:]))}
        for name, (rows, columns, raw) in wanted.items():
            if got[f"blk.0.ffn_{name}_exps.weight"] != ((EXPERTS, rows, columns), "mxfp4", raw):
                return [f"{options} {name}: {got[f'blk.0.ffn_{name}_exps.weight'][:2]}"]
        if "2 quantised tensors (mxfp4) become blocks with the same numbers" not in p.stderr:
            return [p.stderr]
    return []


def check_mxfp4_back(folder):
    """The inverse, and the method that copies blocks, give the stored parts back."""
    p = heft("convert", "-f", "--map", "auto", folder / "m.gguf", folder / "back.gguf")
    if p.returncode:
        return [p.stderr]
    (folder / "back").mkdir()
    p = heft("convert", "-f", "--quantize", "mxfp4:gpt-oss", folder / "back.gguf",
             folder / "back" / "model.safetensors")
    if p.returncode:
        return [p.stderr]
    return differences(read_safetensors(folder / "back" / "model.safetensors"),
                       read_safetensors(folder / "model.safetensors"))


def check_mxfp4_mixes(folder):
    """A mix that keeps mxfp4 takes the blocks; another one needs --requantize."""
    before = gguf_models.Reader(folder / "m.gguf").tensors
    out = folder / "mix.gguf"
    p = heft("convert", "-f", "--map", "auto", "--quantize", "mxfp4_moe", folder, out)
    if p.returncode:
        return [p.stderr]
    after = gguf_models.Reader(out).tensors
    wrong = [k for k in before if "exps.weight" in k and after[k] != before[k]]
    p = heft("convert", "-f", "--map", "auto", "--quantize", "q8_0", folder, folder / "no.gguf")
    if p.returncode != 5 or "--requantize" not in p.stderr or (folder / "no.gguf").exists():
        wrong.append(f"q8_0: {p.returncode} {p.stderr}")
    gpt_oss(folder, (122, 126))  # numbers that fit in q8_0
    p = heft("convert", "-f", "--map", "auto", "--quantize", "q8_0", "--requantize", folder, out)
    if p.returncode:
        return [p.stderr]
    kinds = {v[1] for k, v in gguf_models.Reader(out).tensors.items() if "exps.weight" in k}
    return wrong + ([] if kinds == {"q8_0"} else [f"requantised to {kinds}"])


def check_part(folder):
    """Rows that do not fill blocks are refused."""
    row = np.zeros((4, 24), np.uint8)
    write(folder / "model.safetensors", {
        "model.embed_tokens.weight": np.zeros((4, 48), np.float32),
        "model.layers.0.mlp.up_proj.weight_packed": row,
        "model.layers.0.mlp.up_proj.weight_scale": row[:, :2]})
    p = heft("convert", "--map", "llama", folder / "model.safetensors", folder / "m.gguf")
    ok = p.returncode == 5 and "up_proj.weight' (mxfp4) has no form in GGUF" in p.stderr
    return [] if ok and not (folder / "m.gguf").exists() else [f"{p.returncode} {p.stderr}"]


# ---- tied tensors ----

def matrix(rows, columns, start=0.0):
    return (np.arange(rows * columns, dtype=np.float32) + np.float32(start)).reshape(rows, columns)


def mapped(folder, text, arrays, *options, config=None, source="in.safetensors"):
    """Apply the text of a map, or a shipped one, and return the result and what was said."""
    write(folder / source, arrays)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    name = text
    if "\n" in text:
        name = folder / "test.map"
        name.write_text("map test\n" + text)
    p = heft("convert", "-f", "--map", name, *options, folder / source, folder / "out.safetensors")
    return (read_safetensors(folder / "out.safetensors") if not p.returncode else {}), p


def check_tied(folder):
    """Equal results are written once, whether they are gathered or kept as they are."""
    a, b = matrix(400, 300), matrix(400, 300, 0.5)
    rules = {"kept": "a -> x\nb -> y\n", "gathered": "a -> x : transpose\nb -> y : transpose\n",
             "one of both": "a -> x : f32\nb -> y\n"}
    wrong = []
    for name, text in rules.items():
        x, y = (a.T, b.T) if name == "gathered" else (a, b)
        for access in ("auto", "read"):
            options = [f"--access={access}"] if access != "auto" else []
            got, p = mapped(folder, text + "tie-right x y\n", {"a": a, "b": a}, *options)
            wrong += differences(got, expected({"x": x}))
            wrong += [] if "y equals x and is not written" in p.stderr else [p.stderr]
            got, p = mapped(folder, text + "tie-right x y\n", {"a": a, "b": b}, *options)
            wrong += differences(got, expected({"x": x, "y": y}))
            wrong += [] if "y differs from x" in p.stderr else [p.stderr]
        got, p = mapped(folder, text + "tie-right x y if n\n", {"a": a, "b": a})
        wrong += [f"{name}, if: {w}" for w in differences(got, expected({"x": x, "y": x}))]
        got, p = mapped(folder, text + "let n = 0\ntie-right x y unless n\n", {"a": a, "b": a})
        wrong += [f"{name}, unless: {w}" for w in differences(got, expected({"x": x}))]
        last = a.copy()
        last[-1, -1] += 1
        got, p = mapped(folder, text + "tie-right x y\n", {"a": a, "b": last})
        wrong += [] if "y" in got else [f"{name}: the last element counts"]
    got, p = mapped(folder, "a -> x\nb -> y\ntie-right x y\n", {"a": a, "b": a.reshape(300, 400)})
    return wrong + ([] if "y" in got else ["a shape counts"])


def check_expected(folder):
    """A decoder without an output, and one that needs none."""
    arrays = {"model.embed_tokens.weight": matrix(20, 8), "model.norm.weight": np.ones(8, "f4")}
    both = {**arrays, "lm_head.weight": matrix(20, 8, 0.5)}
    sizes = {"num_attention_heads": 2}
    tied, untied = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
    wrong = []
    for model, config, tensors, lacks in (
            ("llama", untied, arrays, True), ("llama", {}, arrays, True),
            ("llama", tied, arrays, False), ("llama", untied, both, False),
            ("gemma", {}, arrays, False), ("gemma", untied, arrays, True)):
        config = {"model_type": model, **sizes, **config}
        got, p = mapped(folder, model, tensors, config=config)
        said = "lacks what the map expects: 1 tensor, 'lm_head.weight'" in p.stderr
        wrong += [] if got and said == lacks else [f"{config}: {p.stderr}"]
        got, p = mapped(folder, model, tensors, "--strict", config=config)
        wrong += [] if not got == lacks else [f"--strict, {config}: {p.stderr}"]
    return wrong


def check_untied(folder):
    """A tensor stands for the one that the input lacks, and goes through its rule."""
    a, b = matrix(40, 30), matrix(40, 30, 0.5)
    text = "a -> x\nb -> y : transpose\nc -> c\nuntie a b\n"
    more = {"c": matrix(2, 3)}
    wrong = []
    for options in ([], ["--access=read"]):
        got, p = mapped(folder, text, {"a": a, **more}, *options)
        wrong += differences(got, expected({"x": a, "y": a.T, **more}))
    got, p = mapped(folder, text, {"a": a, "b": b, **more})
    wrong += differences(got, expected({"x": a, "y": b.T, **more}))
    got, p = mapped(folder, text, more)  # neither
    wrong += differences(got, expected(more))
    got, p = mapped(folder, "a -> x\nb -> y\nuntie a b\nuntie-right x y\n", {"a": a})
    return wrong + differences(got, expected({"x": a, "y": a}))


def check_heads(folder):
    """The output of a decoder: once in GGUF, twice in Burn, and back."""
    embedding, norm = matrix(20, 8), np.ones(8, np.float32)
    both = {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding,
            "model.norm.weight": norm}
    one = {k: v for k, v in both.items() if k != "lm_head.weight"}
    config = {"model_type": "llama", "num_attention_heads": 2}
    gguf = {"token_embd.weight": embedding, "output_norm.weight": norm}
    wrong = []
    for tied, wanted in ((True, gguf), (False, {**gguf, "output.weight": embedding})):
        got, _ = mapped(folder, "llama", both, config={**config, "tie_word_embeddings": tied})
        wrong += [f"GGUF, tied {tied}: {w}" for w in differences(got, expected(wanted))]
    burn = {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding.T,
            "model.norm.gamma": norm}
    for arrays in (one, both):
        got, _ = mapped(folder, "burn", arrays)
        wrong += [f"Burn: {w}" for w in differences(got, expected(burn))]
    for tied, wanted in ((True, one), (False, both)):
        got, _ = mapped(folder, "burn:inverse", burn,
                        config={**config, "tie_word_embeddings": tied})
        wrong += [f"back from Burn, tied {tied}: {w}" for w in differences(got, expected(wanted))]
    return wrong


# ---- vocabularies of another size ----

def check_resized(folder):
    """Rows are cut off, or are zeros; the inverse does the opposite."""
    wrong = []
    for dtype in (np.float32, np.float16, np.uint16, np.uint8):
        a = np.random.default_rng(3).integers(1, 100, (13, 7)).astype(dtype)
        for size in (5, 13, 20):
            rows = np.zeros((size, 7), dtype)
            rows[:min(13, size)] = a[:size]
            columns = np.zeros((13, size), dtype)
            columns[:, :min(7, size)] = a[:, :size]
            text = f"a -> x : resize 0 13 {size}\nb -> y : resize 1 7 {size}\n"
            for options in ([], ["--access=read"]):
                got, p = mapped(folder, text, {"a": a, "b": a}, *options)
                wrong += [f"{a.dtype} to {size}: {w} {p.stderr}" for w in
                          differences(got, expected({"x": rows, "y": columns}))]
            back, p = mapped(folder, text, {"x": rows, "y": columns}, source="right.safetensors")
            again = np.zeros_like(a), np.zeros_like(a)
            again[0][:min(13, size)] = a[:size]
            again[1][:, :min(7, size)] = a[:, :size]
            wrong += [f"{a.dtype} from {size}: {w} {p.stderr}" for w in
                      differences(back, expected({"a": again[0], "b": again[1]}))]
    # After other operations, and with sizes of the settings.
    a = np.random.default_rng(4).integers(1, 100, (6, 4)).astype(np.float32)
    padded = np.zeros((8, 4), np.float32)
    padded[:6] = a
    got, p = mapped(folder, "let n = vocab_size + 2\na -> x : resize 0 vocab_size n; transpose\n",
                    {"a": a}, config={"vocab_size": 6})
    return wrong + differences(got, expected({"x": padded.T}))


CHECKS = {
    "blocks of MXFP4 are those of gpt-oss, without arithmetic": check_mxfp4,
    "blocks of MXFP4 come back": check_mxfp4_back,
    "mixes and blocks of MXFP4": check_mxfp4_mixes,
    "rows that do not fill blocks of MXFP4": check_part,
    "equal results are written once": check_tied,
    "a tensor stands for the one tied to it": check_untied,
    "decoders without the output that their settings expect": check_expected,
    "outputs of decoders, tied and untied": check_heads,
    "vocabularies of another size": check_resized,
}


def results(folder):
    for name, check in CHECKS.items():
        yield name, check(folder / check.__name__.split("_")[1])


if __name__ == "__main__":
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        sys.exit(tap.report(results(pathlib.Path(d))))
