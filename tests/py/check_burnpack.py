#!/usr/bin/env python3
"""check_burnpack.py HEFT: convert quantized tensors between all generations of Burn.

SCHEMES_BY_GENERATION has a row for each quantization scheme, with its spelling in each generation.
Each row is converted from every generation that has the scheme to every generation that Heft
writes. If the target has the scheme, a reader of the target generation must find the scheme and
unchanged bytes; otherwise Heft must refuse and name the generations that have the scheme. TAP on
stdout."""
import hashlib
import pathlib
import subprocess
import sys
import tempfile

import gen_burnpack
import read_burnpack

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

GENERATIONS = read_burnpack.GENERATIONS
NOT_WRITTEN = "0.19"
WRONG_USE, CANNOT_CARRY = 2, 5
SIZE = {"storage": [8, 1, 1, 1, 1], "len": 1}
LATER = ["0.20", "0.21", "0.22-pre.2"]


def old(generations, value, param, store, level):
    scheme = {"value": value, "param": param, "store": store, "level": level, "mode": "Symmetric"}
    return {g: scheme for g in generations}


def new(value, store, tensor, block=None, mode="Symmetric"):
    return {
        "0.22": {"value": value, "store": store, "mode": mode, "tensor": tensor, "block": block}
    }


def blocks(dtype):
    return {"size": SIZE, "dtype": dtype}


def packed(value, param, level, tensor, block=None):
    """Return the spellings of a packed scheme in all generations."""
    return {
        **old(["0.19"], value, param, "U32", level),
        **old(LATER, value, param, {"PackedU32": 0}, level),
        **new(value, {"PackedU32": 0}, tensor, block)
    }


# name, shape, bytes, scheme by generation
SCHEMES_BY_GENERATION = [
    ("a scale", (2, 4), 12, packed("Q8S", "F32", "Tensor", "F32")),
    ("a scale of halves", (2, 16), 18, packed("Q4F", "F16", "Tensor", "F16")),
    ("a scale per block", (2, 8), 12, packed("Q4S", "BF16", {"Block": SIZE}, None, blocks("BF16"))),
    ("two levels", (2, 8), 14, {
        **old(["0.22-pre.2"], "Q4S", "UE4M3", {"PackedU32": 0}, {
                  "BlockTensor": {"block": SIZE, "global": "F32"}
              }), **new("Q4S", {"PackedU32": 0}, "F32", blocks("UE4M3"))
    }),
    ("native", (4,), 8,
     {**old(["0.19", *LATER], "Q8F", "F32", "Native", "Tensor"), **new("Q8F", "Native", "F32")}),
    ("native, words across lines", (2, 2), 8,
     {**old(["0.19", *LATER], "E4M3", "F32", "Native", "Tensor"), **new("E4M3", "Native", "F32")}),
    ("native, before 0.22 padded", (3,), 8, old(["0.19", *LATER], "E5M2", "F32", "Native",
                                                "Tensor")),
    ("native, in 0.22 not padded", (3,), 7, new("E5M2", "Native", "F32")),
    ("native pairs", (2, 8), 12, {
        **old(["0.19"], "E2M1", "F32", "Native", "Tensor"),
        **old(LATER, "E2M1", "F32", {"PackedNative": 0}, "Tensor"),
        **new("E2M1", {"PackedNative": 0}, "F32")
    }),
    ("native pairs, unpacked by name", (2, 8), 12, new("E2M1", "Native", "F32")),
    ("packed along another dimension", (16, 3), 16, {
        **old(LATER, "Q2S", "F32", {"PackedU32": 1}, "Tensor"),
        **new("Q2S", {"PackedU32": 1}, "F32")
    }),
    ("lines before 0.22 not padded", (3, 3), 12, {
        **old(["0.19"], "Q4S", "F32", "U32", "Tensor"),
        **old(LATER, "Q4S", "F32", {"PackedU32": 0}, "Tensor")
    }),
    ("lines in 0.22 padded", (3, 3), 16, new("Q4S", {"PackedU32": 0}, "F32")),
    ("a table", (2, 16), 12, new("Q2F", {"PackedU32": 0}, "F32", mode="Lookup")),
]
# Accepted spellings that Heft does not write: source generation, scheme, target, expected scheme.
OTHER_SPELLINGS = [
    ("no scale is one of F32", "0.22", new("Q8F", {"PackedU32": 0}, None)["0.22"], "0.21",
     old(["0.21"], "Q8F", "F32", {"PackedU32": 0}, "Tensor")["0.21"]),
    ("no scale stays none", "0.22", new("Q8F", {"PackedU32": 0},
                                        None)["0.22"], "0.22", new("Q8F", {"PackedU32": 0},
                                                                   None)["0.22"]),
    ("fields of 0.22 left out", "0.22", {"value": "Q8F", "store": "Native",
                                         "mode": "Symmetric"}, "0.20",
     old(["0.20"], "Q8F", "F32", "Native", "Tensor")["0.20"]),
]
SYMMETRIC = old(["0.21"], "Q8S", "F32", {"PackedU32": 0}, "Tensor")["0.21"]
# Schemes that no generation reads: an unknown variant, a missing field or an additional field.
NO_SCHEMES = {
    "value": {**SYMMETRIC, "value": "Q6F"},
    "param": {**SYMMETRIC, "param": "F64"},
    "store": {**SYMMETRIC, "store": "U8"},
    "store without dimension": {**SYMMETRIC, "store": "PackedU32"},
    "store of 0.19 with one": {**SYMMETRIC, "store": {"U32": 0}},
    "store of two": {**SYMMETRIC, "store": {"PackedU32": 0, "PackedNative": 0}},
    "dimension": {**SYMMETRIC, "store": {"PackedU32": -1}},
    "level": {**SYMMETRIC, "level": "Block"},
    "level of another name": {**SYMMETRIC, "level": {"Column": SIZE}},
    "level as a number": {**SYMMETRIC, "level": 1},
    "block of four": {**SYMMETRIC, "level": {"Block": {"storage": [8, 1, 1, 1], "len": 1}}},
    "block of 256": {**SYMMETRIC, "level": {"Block": {"storage": [256, 1, 1, 1, 1], "len": 1}}},
    "block without length": {**SYMMETRIC, "level": {"Block": {"storage": [8, 1, 1, 1, 1]}}},
    "no global": {**SYMMETRIC, "level": {"BlockTensor": {"block": SIZE}}},
    "two levels in 0.19": {
        **SYMMETRIC, "store": "U32", "level": {"BlockTensor": {"block": SIZE, "global": "F32"}}
    },
    "mode": {**SYMMETRIC, "mode": "Affine"},
    "mode of 0.22": {**SYMMETRIC, "mode": "Lookup"},
    "mode as a number": {**SYMMETRIC, "mode": 0},
    "value as a number": {**SYMMETRIC, "value": 8},
    "no param": {k: v for k, v in SYMMETRIC.items() if k != "param"},
    "no level": {k: v for k, v in SYMMETRIC.items() if k != "level"},
    "no value": {k: v for k, v in SYMMETRIC.items() if k != "value"},
    "both generations": {**SYMMETRIC, "tensor": "F32", "block": None},
    "one more": {**SYMMETRIC, "zero": 1},
    "block of 0.22 without type": new("Q8F", "Native", None, {"size": SIZE})["0.22"],
    "scale of 0.22": new("Q8F", "Native", "F64")["0.22"],
    "a number": 5,
    "nothing": {},
}


def pack(generation, shape, nbytes, scheme):
    data = bytes((i * 37 + 11) % 256 for i in range(nbytes))
    p = gen_burnpack.Pack([("w", "u8", shape, data), ("x", "f32", (2,), bytes(8))], generation,
                          stored={"w": {"QFloat": scheme}})
    return p.bytes(), hashlib.sha256(data).hexdigest()


def convert(raw, target, folder):
    source, out = folder / "in.bpk", folder / "out.bpk"
    source.write_bytes(raw)
    out.unlink(missing_ok=True)
    p = subprocess.run(
        [HEFT, "convert", "--format-version", target, "--to", "burnpack",
         str(source),
         str(out)], capture_output=True, text=True, check=False)
    return p, (out.read_bytes() if out.exists() else None)


def check_converted(raw, sha, target, want, folder):
    p, out = convert(raw, target, folder)
    if p.returncode or out is None:
        return [f"convert ended with {p.returncode}: {p.stderr.strip()[:200]}"]
    try:
        got = {t["name"]: t for t in read_burnpack.read(out, target)["tensors"]}["w"]
    except read_burnpack.InvalidFile as e:
        return [str(e)]
    wrong = [] if got["sha256"] == sha else ["the bytes differ"]
    if repr(got["stored"]) != repr({"QFloat": want}):
        wrong.append(f"the scheme is {got['stored']}, not {want}")
    return wrong


def check_refused(raw, target, status, words, folder):
    p, out = convert(raw, target, folder)
    wrong = [] if p.returncode == status else [
        f"convert ended with {p.returncode}: {p.stderr.strip()[:200]}"
    ]
    if out is not None:
        wrong.append("an output file exists")
    return wrong + [
        f"{word!r} is not said: {p.stderr.strip()[:200]}" for word in words if word not in p.stderr
    ]


def check_pair(shape, nbytes, forms, source, target, folder):
    raw, sha = pack(source, shape, nbytes, forms[source])
    if target == NOT_WRITTEN:
        return check_refused(raw, target, WRONG_USE, ["cannot be written"], folder)
    if target in forms:
        wrong = check_converted(raw, sha, target, forms[target], folder)
        if source == target and not wrong and (folder / "out.bpk").read_bytes() != raw:
            wrong.append("the file differs")
        return wrong
    supporting = [g for g in forms if g != NOT_WRITTEN]
    return check_refused(raw, target, CANNOT_CARRY,
                         ['"w"', f"Burn {target} cannot read", *supporting], folder)


def rows(folder):
    for name, shape, nbytes, forms in SCHEMES_BY_GENERATION:
        for source in forms:
            for target in GENERATIONS:
                yield f"{name}: {source} as {target}", check_pair(shape, nbytes, forms, source,
                                                                  target, folder)
    for name, source, scheme, target, want in OTHER_SPELLINGS:
        raw, sha = pack(source, (4,), 8, scheme)
        yield f"{name}: {source} as {target}", check_converted(raw, sha, target, want, folder)
    for name, scheme in NO_SCHEMES.items():
        raw, _ = pack("0.21", (4,), 8, scheme)
        for target in ("0.21", "0.22"):
            yield f"no scheme: {name} as {target}", check_refused(raw, target, CANNOT_CARRY,
                                                            ["quantization scheme"], folder)
    yield "as zTensor", list(check_ztensor(folder))
    yield "unknown keys", list(check_unknown_keys(folder))


def check_ztensor(folder):
    """zTensor 1.0 cannot store quantized tensors; the versions named in the message can."""
    _, shape, nbytes, forms = SCHEMES_BY_GENERATION[0]
    raw, _ = pack("0.21", shape, nbytes, forms["0.21"])
    source, out = folder / "in.bpk", folder / "out.zt"
    source.write_bytes(raw)
    p = subprocess.run([HEFT, "convert", source, out], capture_output=True, text=True, check=False)
    if p.returncode != CANNOT_CARRY or "(use --format-version 1.1, 1.2 or 2)" not in p.stderr:
        yield f"convert ended with {p.returncode}: {p.stderr.strip()[:200]}"
    for version in ("1.1", "1.2", "2"):
        out.unlink(missing_ok=True)
        subprocess.run([HEFT, "convert", "--format-version", version, source, out], check=False)
        if subprocess.run([HEFT, "diff", source, out], check=False).returncode:
            yield f"zTensor {version} has another tensor"


def check_unknown_keys(folder):
    """Each unknown key is named when the file is converted, to whichever format."""
    pack = gen_burnpack.Pack(gen_burnpack.few())
    pack.more = {"later": 1}
    pack.descriptors["a"]["sooner"] = 2
    source = folder / "in.bpk"
    source.write_bytes(pack.bytes())
    for name in ("out.bpk", "out.safetensors"):
        p = subprocess.run([HEFT, "convert", "--force", source, folder / name], check=False,
                           capture_output=True, text=True)
        unsaid = [k for k in ("later", "sooner") if f"'{k}' is an unknown" not in p.stderr]
        if p.returncode or unsaid:
            yield f"{name} ended with {p.returncode}, without {unsaid}: {p.stderr.strip()[:300]}"


def main():
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(rows(pathlib.Path(scratch)))


HEFT = sys.argv[1]
sys.exit(main())
