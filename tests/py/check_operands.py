#!/usr/bin/env python3
"""check_operands.py HEFT: of commands that read several models, one is damaged at a time; the
error has its name in front, and no other. TAP on stdout."""
import json
import os
import pathlib
import re
import shutil
import sys

import numpy as np

from checks import heft, require, run
from delta_file import write_model

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

RANDOM = np.random.default_rng(3)
sys.argv[1] = os.path.abspath(sys.argv[1])  # commands run in other folders
USAGE = "unknown or ambiguous option '--no-verify'"
FRAME = bytes.fromhex("28b52ffd")  # begins each part that is compressed


def bf16(*shape):
    return (RANDOM.standard_normal(shape).astype("<f4").view("<u4") >> 16).astype("<u2")


def make_models(folder):
    """Write the models in zTensor, compressed, and two deltas; return the names."""
    weight, bias = bf16(64, 48), bf16(64)
    made = {"old": {"m.weight": weight, "m.bias": bias},
            "new": {"m.weight": weight ^ np.uint16(1), "m.bias": bias},
            "third": {"m.weight": weight ^ np.uint16(3), "m.bias": bias},
            "near": {"m.weight": np.where(np.eye(64, 48, dtype=bool), bf16(64, 48), weight),
                     "m.bias": bias},
            "other": {"n.weight": bf16(64, 48)}, "more": {"o.weight": bf16(64, 48)},
            "side": {"m.bias": np.full(64, 5, "<u2")}}
    for name in "ab":
        made[name] = {f"base_model.model.m.lora_{side}.weight": bf16(*shape)
                      for side, shape in [("A", (4, 48)), ("B", (64, 4))]}
    (folder / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 4}))
    for name, tensors in made.items():
        write_model(folder / f"{name}.safetensors",
                    {key: ("BF16", array) for key, array in tensors.items()})
        heft("convert", "--compress", "zstd", "--digest", "crc32c", f"{name}.safetensors",
             f"{name}.zt", cwd=folder)
    for name, new in [("delta", "new"), ("sparse", "near")]:
        heft("delta", "old.safetensors", f"{new}.safetensors", "-o", f"{name}.zt", cwd=folder)
    return [*made, "delta", "sparse"]


def damage(path, kind):
    """Damage the last compressed part: its bytes, or the mark at its beginning."""
    raw = bytearray(path.read_bytes())
    at = raw.rfind(FRAME)
    require(at > 0, f"{path.name} has no compressed part")
    raw[at + (0 if kind == "frame" else 12)] ^= 0x55
    path.write_bytes(raw)


COMMANDS = {
    "delta": ["delta", "@old", "@new", "-o", "x.zt"],
    "delta, sparse": ["delta", "@old", "@near", "-o", "x.zt"],
    "delta, only compared": ["delta", "-n", "@old", "@new"],
    "delta of other tensors": ["delta", "@old", "@other", "-o", "x.zt"],
    "delta for other programs": ["delta", "--disk", "xor", "@old", "@new", "-o", "x"],
    "apply": ["apply", "@old", "@delta", "-o", "x.safetensors"],
    "apply, sparse": ["apply", "@old", "@sparse", "-o", "x.safetensors"],
    "apply in place": ["apply", "--in-place", "old.safetensors", "@delta"],
    "apply in place, sparse": ["apply", "--in-place", "old.safetensors", "@sparse"],
    "merge an adapter": ["convert", "@old", "--lora", "@a", "x.safetensors"],
    "merge adapters": ["convert", "@old", "--lora", "@a", "--lora", "@b=0.5", "x.safetensors"],
    "merge an adapter, in shards": ["convert", "@old", "--lora", "@a", "--to", "dcp", "x"],
    "extract an adapter": ["convert", "@new", "--extract-lora", "4", "--base", "@old", "x"],
    "blend": ["blend", "--method", "linear", "@old", "@new", "@third", "x.safetensors"],
    "blend, spherical": ["blend", "--method", "slerp", "--t", "0.5", "--base", "@old",
                         "@old", "@new", "x.safetensors"],
    "blend, trimmed": ["blend", "--method", "ties", "--base", "@old", "@new", "@third",
                       "x.safetensors"],
    "merge": ["merge", "@old", "@other", "x.safetensors"],
    "append": ["append", "old.safetensors", "@other"],
    "append several": ["append", "old.safetensors", "@other", "@more"],
    "replace a tensor": ["edit", "--tensor", "m.weight=@new", "old.safetensors"],
    "replace tensors": ["edit", "--tensor", "m.weight=@other:n.weight", "--tensor", "m.bias=@side",
                        "old.safetensors"],
    "diff": ["diff", "@old", "@new"],
    "report": ["report", "@old", "@new", "-o", "x.html"],
}


def check(title, folder):
    """Run the command with each operand damaged."""
    names = make_models(folder)
    args = [re.sub("@([a-z]+)", r"\1.zt", arg) for arg in COMMANDS[title]]
    operands = dict.fromkeys(re.findall("@([a-z]+)", " ".join(COMMANDS[title])))
    for operand in operands:
        for kind in "frame", "bytes":
            for more in [], ["--no-verify"]:
                work = folder / f"{operand} {kind} {len(more)}"
                work.mkdir()
                for name in names:
                    shutil.copy(folder / f"{name}.zt", work)
                shutil.copy(folder / "old.safetensors", work)
                shutil.copy(folder / "adapter_config.json", work)
                damage(work / f"{operand}.zt", kind)
                p = heft(*args, *more, code=None, cwd=work)
                said = p.stderr.decode()
                if more and (p.returncode == 0 or USAGE in said):
                    continue
                require(p.returncode, f"{operand}, {kind}, {more}: no error")
                require(said.split("\n")[-2].startswith(f"heft: {operand}.zt: "),
                        f"{operand}, {kind}, {more}: {said}")


sys.exit(tap.report([(title, run(lambda folder, title=title: check(title, folder)))
                     for title in COMMANDS]))
