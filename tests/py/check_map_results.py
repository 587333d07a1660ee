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


def read(path):
    """Return {name: (element type, shape, bytes)} of a safetensors file."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (e["dtype"], tuple(e["shape"]),
                   data[start + e["data_offsets"][0]:start + e["data_offsets"][1]])
            for name, e in header.items()}


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
    return differences(read(folder / "back" / "model.safetensors"),
                       read(folder / "model.safetensors"))


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


CHECKS = {
    "blocks of MXFP4 are those of gpt-oss, without arithmetic": check_mxfp4,
    "blocks of MXFP4 come back": check_mxfp4_back,
    "mixes and blocks of MXFP4": check_mxfp4_mixes,
    "rows that do not fill blocks of MXFP4": check_part,
}


def results(folder):
    for name, check in CHECKS.items():
        yield name, check(folder / check.__name__.split("_")[1])


if __name__ == "__main__":
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as d:
        sys.exit(tap.report(results(pathlib.Path(d))))
