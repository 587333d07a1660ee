#!/usr/bin/env python3
"""check_clauses.py HEFT: clauses of the specifications that a single sample cannot show.

They concern limits that need large files, and the results of conversions. Independent readers check
the files that Heft writes. TAP on stdout."""
import collections
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile

import cbor
import gen_burnpack
import gen_gptrs
import gen_mag
import gen_torch
import gen_ztensor1
import read_burnpack
import read_embd
import read_gguf
import read_gptrs
import read_mag
import read_ztensor1
from gen_embd import File as Embd
from gen_embd import TOKENS
from samples import CASTAGNOLI, crc, tensor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

CANNOT_CARRY = 5
REFUSALS = (read_mag.InvalidFile, read_burnpack.InvalidFile, read_ztensor1.InvalidFile, ValueError,
            KeyError)


class CheckFailed(Exception):
    pass


def same(what, got, want):
    if got != want:
        raise CheckFailed(f"{what}: {str(got)[:300]}, not {str(want)[:300]}")


def heft(*args, code=0):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    if p.returncode != code:
        raise CheckFailed(
            f"{args[0]} ended with {p.returncode}: "
            f"{p.stderr.decode(errors='replace').strip()[:300]}"
        )
    return p


def written(path, data):
    path.write_bytes(data)
    return path


def converted(source, to, version=None, *more, out=None):
    path = out or source.with_name(source.name + "." + to + (version or ""))
    heft("convert", "--to", to, *(["--format-version", version] if version else []), *more, "--",
         source, path)
    return path


def safetensors(path, tensors, metadata=None):
    """Write {name: (type, shape, bytes or number of bytes)}; a number stands for a hole of
    zeros."""
    header, at, blob = {"__metadata__": metadata or {}}, 0, b""
    for name, (dtype, shape, data) in tensors.items():
        size = data if isinstance(data, int) else len(data)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at, blob = at + size, blob + (b"" if isinstance(data, int) else data)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)
        f.truncate(8 + len(text) + at)
    return path


# ---- Burnpack -------------------------------------------------------------------------------


def burn_ids(path):
    return {t["name"]: t.get("param_id") for t in read_burnpack.read(path.read_bytes())["tensors"]}


def ids_go_through(to, version=None):
    def check(scratch):
        ids = {"a": 0, "b": 2**64 - 1}
        tensors = [tensor(name, "f32", (2, 3)) for name in ("b", "a", "c")]
        source = written(scratch / "m.bpk", gen_burnpack.Pack(tensors, ids=ids).bytes())
        back = converted(converted(source, to, version), "burnpack", out=scratch / "back.bpk")
        same("ids", burn_ids(back), {**ids, "c": None})
    return check


def ids_are_not_invented(scratch):
    source = written(scratch / "m.mag", gen_mag.Archive(gen_mag.few()).bytes())
    same("ids", set(burn_ids(converted(source, "burnpack")).values()), {None})


def ids_are_listed(scratch):
    source = written(scratch / "m.bpk",
                     gen_burnpack.Pack(gen_burnpack.few(), ids={"a": 2**64 - 1}).bytes())
    listed = json.loads(heft("ids", "--json", source).stdout)["tensors"]
    same("ids", {t["name"]: t["burn_id"] for t in listed}, {"b": None, "a": 2**64 - 1, "c.d": None})


def burn_metadata(scratch):
    source = safetensors(scratch / "m.safetensors", {"w": ("F32", [1], bytes(4))})
    out = converted(source, "burnpack", None, "--set", "k=v", "--set", 'n="7"')
    same("metadata", read_burnpack.read(out.read_bytes())["metadata"], {"k": "v", "n": "7"})


def payloads_at_256(to):
    """Write three small tensors with --align 256 and find their bytes at the listed offsets."""
    def check(scratch):
        tensors = {name: ("F32", [3], name.encode() * 12) for name in "abc"}
        out = converted(safetensors(scratch / "m.safetensors", tensors), to, None, "--align", "256")
        data = out.read_bytes()
        for t in json.loads(heft("ls", "--json", out).stdout)["tensors"]:
            at = t["parts"][0]["offset"]
            same(f"the offset of {t['name']}, modulo 256", at % 256, 0)
            same(t["name"], data[at:at + 12], tensors[t["name"]][2])
    return check


# ---- .mag -----------------------------------------------------------------------------------


def many_metadata(scratch):
    meta = [(f"k{i}", i) for i in range(100000)]
    source = written(scratch / "m.mag", gen_mag.Archive([], meta).bytes())
    heft("verify", source)
    same("a copy", converted(source, "mag", "1").read_bytes(), source.read_bytes())


def mag_crc_range(scratch):
    """Check that the header's CRC-32C covers byte 12 to the end of the tensor records."""
    source = safetensors(scratch / "m.safetensors", {"w": ("F32", [2], bytes(8))})
    data = converted(source, "mag").read_bytes()
    end = 24 + 24 + 8 + 1  # header, record, dimension, letter
    same("the checksum", struct.unpack_from("<I", data, 8)[0], crc(CASTAGNOLI, data[12:end]))
    same("the data", data[end:64] + data[72:], b"\xff" * (64 - end + 56))


def mag_metadata(scratch):
    source = written(scratch / "m.mag", gen_mag.Archive(gen_mag.few()).bytes())
    out = converted(source, "mag", "1", "--set", "n=-3", "--set", "x=0.5", "--set", "yes=true",
                    out=scratch / "o.mag")
    got = [(m["key"], m["type"], m["value"]) for m in read_mag.read(out.read_bytes())["metadata"]]
    same("metadata", got, [("n", "i64", -3), ("x", "f64", 0.5), ("yes", "i64", 1)])
    p = heft("convert", "--set", "t=text", source, scratch / "t.mag")
    if b"'t' is left out" not in p.stderr:
        raise CheckFailed("a dropped text is not reported")
    heft("convert", "--strict", "--set", "t=text", source, scratch / "s.mag", code=CANNOT_CARRY)


def mag_default_version(scratch):
    for dtype, size, version in (("F32", 4, "1"), ("I32", 4, "1"), ("I64", 8, "100")):
        source = safetensors(scratch / "m.safetensors", {"w": (dtype, [2], bytes(2 * size))})
        out = converted(source, "mag", out=scratch / f"{dtype}.mag")
        same(f"version with {dtype}", read_mag.read(out.read_bytes())["version"], version)
    heft("convert", "--format-version", "1", source, scratch / "no.mag", code=CANNOT_CARRY)


# ---- gpt-rs ---------------------------------------------------------------------------------


def config_of(path):
    return heft("cat", path, "--part", "config").stdout


def legacy_config(scratch):
    source = written(scratch / "m.bin",
                     gen_gptrs.File(gen_gptrs.few(), config=gen_gptrs.BARE).bytes())
    out = converted(source, "gptrs-checkpoint")
    same("config",
         read_gptrs.read(out.read_bytes())["config"], {"kind": "gpt", "config": gen_gptrs.GPT})


def config_is_kept(scratch):
    odd = b' {"runtime": {"x":  1}, "kind":"\\u0067pt", "later": [1.50], "config": {}}\n'
    source = written(scratch / "m.bin", gen_gptrs.File(gen_gptrs.few()).bytes())
    written(scratch / "c.json", odd)
    out = converted(source, "gptrs-checkpoint", None, "--config", scratch / "c.json")
    same("config", config_of(out), odd)
    same("config of a copy", config_of(converted(out, "gptrs-checkpoint")), odd)


def grads_are_kept(scratch):
    source = written(scratch / "m.bin", gen_gptrs.File(gen_gptrs.few(), grads=[1, 0, 7]).bytes())
    archive = converted(source, "gptrs-archive")
    for path in (archive, converted(archive, "gptrs-checkpoint")):
        same("flags", [t["flag"] for t in read_gptrs.read(path.read_bytes())["tensors"]],
             [True, False, True])


def base_ids_are_left_out(scratch):
    tensors = {name: ("F32", [2], bytes(8)) for name in ("a.bias", "a.weight", "b")}
    source = safetensors(scratch / "m.safetensors", tensors)
    for to in ("gptrs-checkpoint", "gptrs-archive"):
        out = converted(source, to, None, "--base-ids", "none", "--requires-grad", "*.bias=false",
                        "--requires-grad", "a.*=true")
        got = read_gptrs.read(out.read_bytes(), has_ids=False)["tensors"]
        same("flags", {t["name"]: t["flag"] for t in got},
             {"a.bias": False, "a.weight": True, "b": False})
    merged = scratch / "merged.gptrs"
    heft("merge", "--base-ids", "none", "--requires-grad", "true", out, merged)
    same("flags",
         [t["flag"] for t in read_gptrs.read(merged.read_bytes(), has_ids=False)["tensors"]],
         [True] * 3)


def gptrs_types(scratch):
    for dtype, size in (("F64", 8), ("I64", 8), ("U8", 1), ("BOOL", 1), ("I16", 2)):
        source = safetensors(scratch / "m.safetensors", {"w": (dtype, [2], bytes(2 * size))})
        for to in ("gptrs-checkpoint", "gptrs-archive"):
            heft("convert", "--to", to, source, scratch / "no", code=CANNOT_CARRY)
            if (scratch / "no").exists():
                raise CheckFailed(f"{dtype} in {to}: an output file exists")


def gptrs_names(scratch):
    source = safetensors(scratch / "m.safetensors", {"\u00e9": ("F32", [1], bytes(4))})
    heft("convert", "--to", "gptrs-checkpoint", source, scratch / "no", code=CANNOT_CARRY)
    archive = converted(source, "gptrs-archive")
    same("names", [t["name"] for t in read_gptrs.read(archive.read_bytes())["tensors"]], ["\u00e9"])


def gptrs_has_no_metadata(scratch):
    source = written(scratch / "m.bin", gen_gptrs.File(gen_gptrs.few()).bytes())
    heft("edit", "--set", "k=v", source, code=CANNOT_CARRY)
    same("the file", source.read_bytes(), gen_gptrs.File(gen_gptrs.few()).bytes())


# ---- EMBD -----------------------------------------------------------------------------------

HIDDEN, INNER, WORDS, POSITIONS = 384, 1536, 30522, 512
REQUIRED = {
    "model_name", "model_version", "embedding_dim", "vocab_size", "num_layers",
    "num_attention_heads", "hidden_size", "intermediate_size", "max_position_emb", "created_at"
}


def minilm():
    """Return {name: shape} of the tensors that the specification requires."""
    names = {
        "embeddings.word_embeddings.weight": [WORDS, HIDDEN],
        "embeddings.position_embeddings.weight": [POSITIONS, HIDDEN],
        "embeddings.token_type_embeddings.weight": [2, HIDDEN],
        "embeddings.LayerNorm.weight": [HIDDEN], "embeddings.LayerNorm.bias": [HIDDEN]
    }
    for n in range(6):
        for suffix, shape in {
                "attention.self.query.weight": [HIDDEN, HIDDEN], "attention.self.query.bias": [
                    HIDDEN
                ], "attention.self.key.weight": [HIDDEN, HIDDEN], "attention.self.key.bias": [
                    HIDDEN
                ], "attention.self.value.weight": [HIDDEN,
                                                   HIDDEN], "attention.self.value.bias": [HIDDEN],
                "attention.output.dense.weight": [HIDDEN,
                                                  HIDDEN], "attention.output.dense.bias": [HIDDEN],
                "attention.output.LayerNorm.weight": [HIDDEN], "attention.output.LayerNorm.bias": [
                    HIDDEN
                ], "intermediate.dense.weight": [INNER, HIDDEN], "intermediate.dense.bias": [INNER],
                "output.dense.weight": [HIDDEN, INNER], "output.dense.bias": [HIDDEN],
                "output.LayerNorm.weight": [HIDDEN], "output.LayerNorm.bias": [HIDDEN]
        }.items():
            names[f"encoder.layer.{n}.{suffix}"] = shape
    return names


def profile_findings(path, rule, severity="fault", code=1):
    found = json.loads(
        heft("verify", "--json", "--profile", "all-MiniLM-L6-v2", path,
             code=code).stdout)["findings"]
    return [f for f in found if f["rule"] == "profile/" + rule and f["severity"] == severity]


def minilm_file(scratch, shapes, dtype="F32", size=4):
    count = {
        name: size * shape[0] * (shape[1] if len(shape) > 1 else 1)
        for name, shape in shapes.items()
    }
    return safetensors(scratch / "m.safetensors",
                       {name: (dtype, shape, count[name]) for name, shape in shapes.items()})


def minilm_is_complete(scratch):
    profile_findings(minilm_file(scratch, minilm()), "tensor", code=0)
    pooler = {"pooler.dense.weight": [HIDDEN, HIDDEN], "pooler.dense.bias": [HIDDEN]}
    profile_findings(minilm_file(scratch, {**minilm(), **pooler}), "tensor", code=0)


def minilm_misses_each(scratch):
    missing = [f["text"] for f in profile_findings(minilm_file(scratch, {"other": [1]}), "tensor")]
    same("tensors asked for", len(missing), len(minilm()))
    for name in minilm():
        if not any(name in text for text in missing):
            raise CheckFailed(f"{name} is not reported as missing")


def minilm_shapes_and_types(scratch):
    reversed_shapes = {
        name: shape[::-1] if len(shape) > 1 else [shape[0] + 1] for name, shape in minilm().items()
    }
    square = sum(shape == shape[::-1] and len(shape) > 1 for shape in minilm().values())
    same("wrong shapes", len(profile_findings(minilm_file(scratch, reversed_shapes), "shape")),
         len(reversed_shapes) - square)
    same("wrong types", len(profile_findings(minilm_file(scratch, minilm(), "F16", 2), "dtype")),
         len(reversed_shapes))


def minilm_metadata(scratch):
    source = written(scratch / "m.weights", Embd(few_floats(), meta=[]).bytes())
    asked = {
        key for f in profile_findings(source, "metadata") for key in REQUIRED
        if f"'{key}'" in f["text"]
    }
    same("metadata asked for", asked, REQUIRED)
    values = {
        "model_name": "m", "model_version": "1.0.0", "created_at": "2025-01-16T12:00:00Z",
        "embedding_dim": 384, "vocab_size": WORDS, "num_layers": 6, "num_attention_heads": 12,
        "hidden_size": HIDDEN, "intermediate_size": INNER, "max_position_emb": POSITIONS
    }
    for f in profile_findings(source, "metadata"):
        if "heft edit --set" not in f["text"]:
            raise CheckFailed(f"the message does not explain how to add the key: {f['text']}")
    heft("edit", *[x for k, v in values.items() for x in ("--set", f"{k}={v}")], source)
    same("metadata missing", profile_findings(source, "metadata"), [])


def few_floats():
    return [tensor("a", "f32", (2, 3))]


def embd_writes_sections(scratch):
    """Check flags, sections, offsets and checksums of a converted file."""
    source = safetensors(scratch / "m.safetensors",
                         {"w": ("F32", [2, 3], bytes(24)), "b": ("I8", [3], b"abc")}, {"k": "v"})
    written(scratch / "vocab.txt", "".join(t + "\n" for t in TOKENS[:-1]).encode())
    got = read_embd.read(
        converted(source, "embd", None, "--vocab", scratch / "vocab.txt").read_bytes())
    same("metadata", got["metadata"], [{"key": "k", "value": "v"}])
    same("tokens", got["vocab"], TOKENS[:-1])
    same("special ids", got["special"], [0, 7, 8, 9, 10])
    same("types", [t["dtype"] for t in got["tensors"]], ["f32", "i8"])


def embd_values_have_a_length(scratch):
    most, source = "v" * 65535, safetensors(scratch / "m.safetensors",
                                            {"w": ("F32", [1], bytes(4))})
    for key, value in (("k", most + "v"), ("k" * 65536, "v")):
        no = heft("convert", "--to", "embd", "--set", f"{key}={value}", source,
                  scratch / "no.weights", code=CANNOT_CARRY)
        if b"metadata 'k" not in no.stderr or b"65536 bytes" not in no.stderr or (
                scratch / "no.weights").exists():
            raise CheckFailed(f"the refusal has the wrong message: {no.stderr[:300]}")
        out = converted(source, "embd", None, "--force", "--allow-loss", "--set", f"{key}={value}",
                        "--set", "other=1")
        same("metadata",
             read_embd.read(out.read_bytes())["metadata"], [{"key": "other", "value": "1"}])
        before = out.read_bytes()
        no = heft("edit", "--set", f"{key}={value}", out, code=CANNOT_CARRY)
        if b"metadata 'k" not in no.stderr or b"65536 bytes" not in no.stderr:
            raise CheckFailed(f"edit does not name the reason: {no.stderr[:300]}")
        same("the file", out.read_bytes(), before)
    heft("edit", "--set", f"k={most}", "--unset", "other", out)
    same("metadata", read_embd.read(out.read_bytes())["metadata"], [{"key": "k", "value": most}])


def embd_types(scratch):
    for dtype, size in (("F64", 8), ("I64", 8), ("U64", 8), ("BOOL", 1)):
        source = safetensors(scratch / "m.safetensors", {"w": (dtype, [2], bytes(2 * size))})
        heft("convert", "--to", "embd", source, scratch / "no", code=CANNOT_CARRY)


def embd_checksums_stop_a_copy(scratch):
    good = Embd(few_floats()).bytes()
    data, footer = struct.unpack_from("<I", good, 36)[0], len(good) - 16
    # a byte of each checksum and of the bytes that each checksum covers
    for i in (56, 60, 76, data, footer, footer + 4):
        bad = bytearray(good)
        bad[i] ^= 1
        source = written(scratch / "m.weights", bytes(bad))
        heft("convert", source, scratch / "o.weights", code=3)
        if (scratch / "o.weights").exists():
            raise CheckFailed(f"byte {i} differs, and an output file exists")


# ---- zTensor --------------------------------------------------------------------------------

ROWS, COLUMNS = 3, 4
LARGE, LITTLE = 512 << 20, 128 << 20
CSR = {"values": [1.5, 2.0, -3.0, 4.0, 5.0], "indices": [0, 3, 1, 2, 3], "indptr": [0, 2, 2, 5]}
COO = {"values": [1.5, 2.0, -3.0], "coords": [0, 2, 2, 1, 0, 3]}
DENSE = {
    "csr": [1.5, 0, 0, 2.0, 0, 0, 0, 0, 0, -3.0, 4.0, 5.0],
    "coo": [0, 1.5, 0, 0, 0, 0, 0, 0, 2.0, 0, 0, -3.0]
}


def sparse_file(path, version="1.0", stored=None):
    f, made = gen_ztensor1.File(version), {}
    for name, parts in (("coo", COO), ("csr", CSR)):
        packed = {
            r: ("f32", struct.pack(f"<{len(v)}f", *v)) if r == "values" else
            ("u64", struct.pack(f"<{len(v)}Q", *v)) for r, v in parts.items()
        }
        made[name] = f.tensor(
            "f32", [ROWS, COLUMNS], "sparse_" + name,
            {r: f.part(t, d, stored=stored and stored(d)) for r, (t, d) in packed.items()})
    return written(path, f.end(f.root(made)))


def densified(stored=None):
    def check(scratch):
        for version in ("1.0", "1.2"):
            source = sparse_file(scratch / f"s{version}.zt", version, stored)
            out = converted(source, "safetensors", None, "--densify", "*")
            for name, values in DENSE.items():
                same(name, struct.unpack("<12f", heft("cat", out, name).stdout), tuple(values))
    return check


# Heft's name, PyTorch's name, struct code, values at positions 1, 0 and 1, dense tensor
TWICE = [("f32", "float32", "f", [1.5, 8, 2], [8, 3.5]),
         ("f16", "float16", "e", [1.5, 8, 2], [8, 3.5]),
         ("i16", "int16", "h", [-3, 7, 300], [7, 297]), ("u8", "uint8", "B", [200, 1, 100], [1,
                                                                                             44]),
         ("bool", "bool", "B", [1, 0, 1], [0, 1]),
         ("f8_e8m0", "float8_e8m0fnu", "B", [130, 127, 130], [127, 131])]


def entries_of_one_place_add_up(scratch):
    """Sum entries with equal coordinates, as PyTorch does; in f8_e8m0, 8 + 8 is 16."""
    coords = gen_torch.numbers("LongStorage", "q", [1, 0, 1], (1, 3))
    tensors = {}
    for name, kind, letter, values, _ in TWICE:
        data = struct.pack(f"<3{letter}", *values)
        storage = gen_torch.Memory("UntypedStorage", data, len(data))
        part = gen_torch.Call(gen_torch.UTILS._rebuild_tensor_v3, storage, 0, (3,), (1,), False,
                              collections.OrderedDict(), getattr(gen_torch.TORCH, kind))
        tensors[name] = gen_torch.sparse("torch.sparse_coo", coords, part, (2,))
    source = written(scratch / "twice.pt", gen_torch.zipped(tensors))
    out = converted(source, "safetensors", None, "--densify", "*")
    for name, _, letter, _, dense in TWICE:
        same(name, struct.unpack(f"<2{letter}", heft("cat", out, name).stdout), tuple(dense))


def sparsified(kind):
    """Convert dense to sparse, check the components, and convert back."""
    def check(scratch):
        raw = struct.pack("<12f", *DENSE[kind])
        source = safetensors(scratch / "m.safetensors", {kind: ("F32", [ROWS, COLUMNS], raw)})
        out = converted(source, "ztensor", "1.0", "--sparsify", kind, "--digest", "sha256",
                        "--compress", "zstd")
        got = read_ztensor1.read(out, "1.0", None, "sha256")["tensors"][0]
        same("layout", got["layout"], "sparse_" + kind)
        for role, values in (CSR if kind == "csr" else COO).items():
            packed = struct.pack(f"<{len(values)}{'f' if role == 'values' else 'Q'}", *values)
            same(role, heft("cat", out, kind, "--part", role).stdout, packed)
        back = converted(out, "safetensors", None, "--densify", "*")
        same("dense again", heft("cat", back, kind).stdout, raw)
    return check


def stored_as(*options, algorithm=None, encoding=None):
    """Write 1.0 with the options; the reader checks every digest over the stored bytes."""
    def check(scratch):
        source = safetensors(scratch / "m.safetensors",
                             {"w": ("F32", [900], bytes(3600)), "b": ("BOOL", [2], b"\0\1")})
        out = converted(source, "ztensor", "1.0", *options)
        same("tensors", len(read_ztensor1.read(out, "1.0", None, algorithm)["tensors"]), 2)
        data = out.read_bytes()
        same("zstd", b'hencodingdzstd' in data, encoding == "zstd")
        if algorithm == "crc32c":
            same("a crc32c", b"crc32c:0x" in data, True)
    return check


def stored_in(path, version):
    """Return {(tensor, component): (encoding, digest algorithm)} from the manifest."""
    data, end = path.read_bytes(), 40 if version == "2" else 8 if version == "1.0" else 16
    at = struct.unpack_from("<Q", data, len(data) - end)[0]
    m = cbor.decode(data, at if version == "2" else len(data) - end - at, 64)[0]
    objects = m["tensors" if version == "1.0" else "objects"]
    return {(n, r): (p.get("encoding", "raw"), p["digest"].split(":")[0] if "digest" in p else None)
            for n, o in objects.items()
            for r, p in o["parts" if version == "2" else "components"].items()}


def chosen_by_pattern(scratch):
    """The first matching pattern of --compress and --digest decides."""
    zeros = bytes(1 << 16)
    source = safetensors(
        scratch / "m.safetensors",
        {n: ("U8", [1 << 16], bytes([i]) + zeros[1:]) for i, n in enumerate("abc")})
    for version, packed, other in (("1.0", "zstd", "crc32c"), ("1.2", "zstd", "crc32c"),
                                   ("2", "zt.zstd-seekable/1", "xxh3")):
        out = converted(source, "ztensor", version, "--compress", "a=zstd:19", "--compress",
                        "b=none", "--compress", "zstd", "--digest", "c=none", "--digest",
                        "[ab]=sha256", "--digest", other)
        same(
            version, stored_in(out, version),
            {("a", "data"): (packed, "sha256"), ("b", "data"): ("raw", "sha256"),
             ("c", "data"): (packed, None)})
        same("verify", heft("verify", out).returncode, 0)
        for name in "abc":
            same(name, heft("cat", out, name).stdout, heft("cat", source, name).stdout)
    p = heft("convert", "--to", "ztensor", "--digest", "nobody=sha256", source, scratch / "w.zt")
    same("a warning", b"no tensor matches --digest 'nobody'" in p.stderr, True)


def mixed_file(path):
    """Write a tensor with three components: compressed with sha256, raw with crc32c, raw
    without."""
    f = gen_ztensor1.File("1.2")
    data = bytes(64) * 64
    parts = {"packed": f.part("u8", data, stored=gen_ztensor1.frame(data), algorithm="sha256"),
             "scale": f.part("f32", bytes(16), algorithm="crc32c"), "zero": f.part("u8", b"\1\2")}
    return written(path, f.end(f.root({"q": f.tensor("u8", [64, 64], "own.layout", parts)})))


KEPT = {("q", "packed"): ("zstd", "sha256"), ("q", "scale"): ("raw", "crc32c"),
        ("q", "zero"): ("raw", None)}


def components_stay_as_they_are(scratch):
    source = mixed_file(scratch / "m.zt")
    same("the source", stored_in(source, "1.2"), KEPT)
    same("1.2", stored_in(converted(source, "ztensor", None, "--strict"), "1.2"), KEPT)
    heft("merge", "--strict", source, scratch / "merged.zt")
    same("merged", stored_in(scratch / "merged.zt", "1.2"), KEPT)
    two = converted(source, "ztensor", "2")
    now = {("q", "packed"): ("zt.zstd-seekable/1", "sha256"), ("q", "scale"): ("raw", "xxh3"),
           ("q", "zero"): ("raw", "xxh3")}
    same("2", stored_in(two, "2"), now)
    same("2 again", stored_in(converted(two, "ztensor", None, "--strict"), "2"), now)
    p = heft("convert", "-v", "--to", "ztensor", "--format-version", "1.1", two,
             scratch / "back.zt")
    same("a note", b"digests that this version does not have" in p.stderr, True)
    same("1.1", stored_in(scratch / "back.zt", "1.1")["q", "scale"], ("raw", "crc32c"))


def unknown_keys(source, keys, to):
    def check(scratch):
        path = source(scratch)
        p = heft("convert", "-v", "--to", to, path, scratch / "out")
        for key in keys:
            same(key, f'"{key}"' in p.stderr.decode() or key in p.stderr.decode(), True)
        heft("convert", "--strict", "--to", to, path, scratch / "none", code=5)
        same("a file", (scratch / "none").exists(), False)
    return check


def odd_ztensor(version):
    def make(scratch):
        f = gen_ztensor1.File(version)
        t = f.dense(gen_ztensor1.T)
        t["components"]["data"]["of_the_component"] = 1
        t["of_the_tensor"] = [1, 2]
        return written(scratch / "m.zt", f.end(f.root({"t": t}) | {"of_the_manifest": None}))
    return make


def odd_burnpack(scratch):
    p = gen_burnpack.Pack(gen_burnpack.few())
    p.more = {"of_the_manifest": [1]}
    p.descriptors["a"]["of_the_tensor"] = {}
    return written(scratch / "m.bpk", p.bytes())


def generations_stay(scratch):
    source = safetensors(scratch / "m.safetensors", {"w": ("F32", [2], bytes(8))})
    for to, version in (("ztensor", "1.1"), ("ztensor", "1.2"), ("ztensor", "2"), ("mag", "100"),
                        ("mag", "snapshot"), ("gguf", "2"), ("embd", "simple")):
        out = converted(source, to, version, *(["--allow-loss"] if to == "embd" else []))
        again = converted(out, to, None, out=scratch / "again")
        same(f"{to} {version}",
             json.loads(heft("info", "--json", again).stdout)["version"], version)
        (scratch / "again").unlink()


def streamed(scratch):
    """A pipe receives the same bytes as a file, compressed and with digests."""
    source = safetensors(scratch / "m.safetensors", {"w": ("F32", [2000], bytes(8000))})
    args = ("--format-version", "1.0", "--digest", "sha256", "--compress", "zstd")
    out = converted(source, "ztensor", "1.0", *args[2:])
    same("the stream",
         heft("convert", "--to", "ztensor", *args, source, "-").stdout == out.read_bytes(), True)
    read_ztensor1.read(out, "1.0", None, "sha256")


def streamed_in_little_memory(scratch):
    """Compress a sparse file of zeros into a pipe, with a limit on the process's private memory."""
    source = safetensors(scratch / "m.safetensors", {"w": ("U8", [LARGE], LARGE)})
    p = subprocess.run([
        HEFT, "convert", "-j", "2", "--to", "ztensor", "--digest", "sha256", "--compress", "zstd",
        source, "-"
    ], capture_output=True, check=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA,
                                                             (LITTLE, LITTLE)))
    if p.returncode:
        raise CheckFailed(f"convert ended with {p.returncode}: {p.stderr.decode().strip()[:300]}")
    heft("verify", written(scratch / "m.zt", p.stdout))


def ztensor_attributes(scratch):
    source = safetensors(scratch / "m.safetensors", {"w": ("F32", [1], bytes(4))})
    recommended = {
        "license": "Apache-2.0", "description": "d", "framework": "PyTorch", "model_name": "n",
        "created_at": "2024-01-15T10:30:00Z"
    }
    options = [word for k, v in recommended.items() for word in ("--set", f'{k}="{v}"')]
    out = converted(source, "ztensor", "1.0", *options)
    same("attributes", read_ztensor1.read(out)["metadata"], recommended)
    info = json.loads(heft("info", "--json", out).stdout)
    same("metadata", info["metadata"], recommended)


def tied_components(scratch):
    f = gen_ztensor1.File()
    shared = f.dense(tensor("a", "f32", (4,)))
    source = written(scratch / "m.zt", f.end(f.root({"a": shared, "b": shared})))
    out = converted(source, "ztensor", "1.0", out=scratch / "o.zt")
    listing = json.loads(heft("ls", "--json", out).stdout)
    same("offsets", [t["parts"][0]["offset"] for t in listing["tensors"]], [64, 64])


def digests_stop_a_copy(scratch):
    for algorithm in ("crc32c", "sha256"):
        f = gen_ztensor1.File()
        data = f.end(f.root({"t": f.dense(gen_ztensor1.T, algorithm=algorithm)}))
        source = written(scratch / "m.zt", data[:64] + bytes([data[64] ^ 1]) + data[65:])
        p = heft("convert", "--to", "safetensors", source, scratch / "no", code=3)
        if (scratch / "no").exists() or b"ztensor/digest" not in p.stderr:
            raise CheckFailed(f"an output file exists, or the rule is not named")
        heft("convert", "--no-verify", "--force", "--to", "safetensors", source, scratch / "copied")


def unknown_layouts(scratch):
    """Components of any length are listed, read by role and copied."""
    parts = {"data": bytes(range(8)), "scale": b"ssss", "zero_point": b"z"}
    f = gen_ztensor1.File()
    made = {r: f.part("u8", d) for r, d in parts.items()}
    source = written(scratch / "m.zt",
                     f.end(f.root({"q": f.tensor("u8", [4, 4], "quantized_4bit", made)})))
    listing = json.loads(heft("ls", "--json", source).stdout)["tensors"][0]
    same("layout and roles", (listing["layout"], [p["role"] for p in listing["parts"]]),
         ("quantized_4bit", sorted(parts)))
    for options, algorithm in (((), None), (("--digest", "crc32c", "--compress", "zstd"),
                                            "crc32c")):
        out = converted(source, "ztensor", "1.0", *options, out=scratch / f"{algorithm}.zt")
        read_ztensor1.read(out, "1.0", None, algorithm)
        for role, data in parts.items():
            same(role, heft("cat", out, "q", "--part", role).stdout, data)


# ---- scalars --------------------------------------------------------------------------------


def scalars_get_a_dimension(reader, to, *version):
    """A target without scalars stores shape [1] with a warning; --strict makes it an error."""
    def check(scratch):
        source = safetensors(
            scratch / "m.safetensors",
            {"s": ("F32", [], struct.pack("<f", 2.5)), "w": ("F32", [2], bytes(8))})
        command = ["convert", "--to", to, *(["--format-version", *version] if version else [])]
        messages = heft(*command, source, scratch / "out").stderr.decode()
        same("warnings", [
            line.endswith('(tensor "s")')
            for line in messages.splitlines() if "warning: rank 0" in line
        ], [True])
        stored = {t["name"]: t for t in reader.read((scratch / "out").read_bytes())["tensors"]}
        same("shapes", {name: list(t["shape"]) for name, t in stored.items()}, {"s": [1], "w": [2]})
        same("bytes", heft("cat", scratch / "out", "s").stdout, struct.pack("<f", 2.5))
        messages = heft(*command, "--strict", source, scratch / "strict",
                        code=CANNOT_CARRY).stderr.decode()
        same("messages of --strict", "error: rank 0" in messages, True)
        same("an output under --strict", (scratch / "strict").exists(), False)
    return check


# ---- the table ------------------------------------------------------------------------------

CLAUSES = [
    ("Burnpack: param_id survives GGUF and back", ids_go_through("gguf")),
    ("Burnpack: param_id survives safetensors and back", ids_go_through("safetensors")),
    ("Burnpack: param_id survives zTensor 1.1 and back", ids_go_through("ztensor", "1.1")),
    ("Burnpack: param_id survives zTensor 1.2 and back", ids_go_through("ztensor", "1.2")),
    ("Burnpack: param_id survives zTensor 2 and back", ids_go_through("ztensor", "2")),
    ("Burnpack: no param_id is invented", ids_are_not_invented),
    ("Burnpack: heft ids lists every param_id", ids_are_listed),
    ("Burnpack: --set writes metadata", burn_metadata),
    ("mag: 100,000 metadata entries are read and copied", many_metadata),
    ("mag: payloads at multiples of 256", payloads_at_256("mag")),
    ("mag: the checksum covers bytes 12 to the end of the records", mag_crc_range),
    ("mag: integers, floats and truth values as metadata", mag_metadata),
    ("mag: version 1 unless an element type needs version 100", mag_default_version),
    ("gpt-rs: a bare GPT configuration is wrapped", legacy_config),
    ("gpt-rs: config_json is kept byte for byte", config_is_kept),
    ("gpt-rs: requires_grad is kept from checkpoint to archive", grads_are_kept),
    ("gpt-rs: other element types are refused", gptrs_types),
    ("gpt-rs: --base-ids none stores no base ids", base_ids_are_left_out),
    ("gpt-rs: names outside ASCII are refused in checkpoints only", gptrs_names),
    ("gpt-rs: metadata are refused by edit", gptrs_has_no_metadata),
    ("gpt-rs: payloads at multiples of 256", payloads_at_256("gptrs-checkpoint")),
    ("EMBD: the tensors of all-MiniLM-L6-v2 with and without pooler", minilm_is_complete),
    ("EMBD: each tensor of all-MiniLM-L6-v2 is required", minilm_misses_each),
    ("EMBD: shapes and element types of all-MiniLM-L6-v2", minilm_shapes_and_types),
    ("EMBD: metadata of all-MiniLM-L6-v2", minilm_metadata),
    ("EMBD: sections of a converted file", embd_writes_sections),
    ("EMBD: other element types are refused", embd_types),
    ("EMBD: metadata longer than 65,535 bytes are refused", embd_values_have_a_length),
    ("EMBD: wrong checksums stop a conversion", embd_checksums_stop_a_copy),
    ("EMBD: payloads at multiples of 256", payloads_at_256("embd")),
    ("mag: a scalar is stored as [1]", scalars_get_a_dimension(read_mag, "mag")),
    ("mag: a scalar is stored as [1] in version 100", scalars_get_a_dimension(
        read_mag, "mag", "100")),
    ("gpt-rs: a scalar is stored as [1] in a checkpoint",
     scalars_get_a_dimension(read_gptrs, "gptrs-checkpoint")),
    ("gpt-rs: a scalar is stored as [1] in an archive",
     scalars_get_a_dimension(read_gptrs, "gptrs-archive")),
    ("EMBD: a scalar is stored as [1]", scalars_get_a_dimension(read_embd, "embd")),
    ("EMBD: a scalar is stored as [1] in a simple stream",
     scalars_get_a_dimension(read_embd, "embd", "simple")),
    ("GGUF: a scalar is stored as [1]", scalars_get_a_dimension(read_gguf, "gguf")),
    ("zTensor: payloads at multiples of 256", payloads_at_256("ztensor")),
    ("torch: entries with equal coordinates are summed", entries_of_one_place_add_up),
    ("zTensor: sparse tensors become dense", densified()),
    ("zTensor: compressed sparse tensors become dense", densified(gen_ztensor1.frame)),
    ("zTensor: dense becomes sparse_csr", sparsified("csr")),
    ("zTensor: dense becomes sparse_coo", sparsified("coo")),
    ("zTensor: crc32c over raw components", stored_as("--digest", "crc32c", algorithm="crc32c")),
    ("zTensor: crc32c over compressed components",
     stored_as("--digest", "crc32c", "--compress", "zstd", algorithm="crc32c", encoding="zstd")),
    ("zTensor: sha256 over compressed components",
     stored_as("--digest", "sha256", "--compress", "zstd:9", algorithm="sha256", encoding="zstd")),
    ("zTensor: encoding and digest are chosen by pattern", chosen_by_pattern),
    ("zTensor: encoding and digests of components are kept", components_stay_as_they_are),
    ("zTensor: dropped unknown keys are reported in 1.0",
     unknown_keys(odd_ztensor("1.0"), ["of_the_component", "of_the_tensor", "of_the_manifest"],
                  "ztensor")),
    ("zTensor: dropped unknown keys are reported in 1.2",
     unknown_keys(odd_ztensor("1.2"), ["of_the_component", "of_the_tensor", "of_the_manifest"],
                  "ztensor")),
    ("Burnpack: dropped unknown keys are reported",
     unknown_keys(odd_burnpack, ["of_the_tensor", "of_the_manifest"], "burnpack")),
    ("all formats: a conversion keeps the generation", generations_stay),
    ("zTensor: a pipe receives the same bytes as a file", streamed),
    ("zTensor: 512 MiB are written to a pipe with 128 MiB of memory", streamed_in_little_memory),
    ("zTensor: recommended attributes are written", ztensor_attributes),
    ("zTensor: shared components stay shared", tied_components),
    ("zTensor: wrong digests stop a conversion", digests_stop_a_copy),
    ("zTensor: unknown layouts are listed, read and copied", unknown_layouts),
]


def run(check):
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
        except (CheckFailed, *REFUSALS) as e:
            return [str(e)]
    return []


HEFT = sys.argv[1]
sys.exit(tap.report((title, run(check)) for title, check in CLAUSES))
