#!/usr/bin/env python3
"""check_qfloat_decoding.py HEFT: judge `heft convert --dequantize` of Burn's quantised tensors.

NumPy makes Burnpacks of every release with random bytes as numbers and scales, in all schemes that
Burn can spell, and computes what they represent from the definition of Burn (burn-std,
tensor/quantization): element by element, from its place in the tensor.  The decoded numbers must be
the same to the bit, but any NaN equals any other.  Tensors whose bytes several releases would read
differently, and tables that are not in the file, must be refused by name.  TAP on stdout."""
import functools
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

import quantised_decoders as decode
import quantised_models as models
from gen_burnpack import Pack

RELEASES = ("0.19", "0.20", "0.21", "0.22-pre.2", "0.22")
VALUES = {"Q8F": 8, "Q8S": 8, "Q4F": 4, "Q4S": 4, "Q2F": 2, "Q2S": 2, "E4M3": 8, "E5M2": 8,
          "E2M1": 4}
FLOATS = {"E4M3": decode.E4M3, "E5M2": decode.E5M2, "E2M1": decode.E2M1}
SCALES = {"F32": 4, "F16": 2, "BF16": 2, "UE8M0": 1, "UE4M3": 1}
INVALID, UNSUPPORTED = 3, 5


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, text=True, check=False)


# ---- the definition ---------------------------------------------------------------------------


def number_of(code, value):
    """Return what a code of so many bits stands for."""
    bits = VALUES[value]
    code &= (1 << bits) - 1
    if value in FLOATS:
        return FLOATS[value][code]
    return np.float32(code - (1 << bits) if code >> (bits - 1) else code)


def scales_of(raw, kind):
    if kind == "F32":
        return raw.view("<f4")
    if kind == "F16":
        return raw.view("<f2").astype(np.float32)
    if kind == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    return {"UE8M0": decode.E8M0, "UE4M3": decode.E4M3}[kind][raw]


def exchanged(items, packed_dim):
    """Return dimensions, or places, with that of the packing last."""
    items = list(items)
    axis = len(items) - 1 - packed_dim
    items[axis], items[-1] = items[-1], items[axis]
    return items


class Tensor:
    """A quantised tensor: value, store ("Native", "PackedNative" or "PackedU32"), the dimension of
    the packing, sizes of a block or None, types of scales.  fills: each line has whole words."""

    def __init__(self, rng, shape, value, store="Native", packed=0, block=None, scale="F32",
                 tensor_scale=None, fills=True, stored_scale=None, pairs=False):
        self.shape, self.value, self.store, self.packed = shape, value, store, packed
        self.block, self.scale, self.tensor_scale = block, scale, tensor_scale
        self.stored_scale = stored_scale or scale
        bits = VALUES[value]
        if store == "PackedU32":
            self.unit, self.field = 32, bits
        elif value == "E2M1" and (store == "PackedNative" or pairs):
            self.unit, self.field = 8, 4
        else:
            self.unit, self.field = 8, 8
        self.fills = fills
        self.rng = rng
        self.make()

    def make(self):
        shape = self.shape or (1, )
        self.dims = exchanged(shape, self.packed)
        sizes = [1] * len(shape) if not self.block else (
            [1] * (len(shape) - len(self.block)) + list(self.block))
        self.sizes = exchanged(sizes, self.packed)
        line = self.dims[-1] * self.field
        self.line = -(-line // self.unit) * self.unit if self.fills else line
        lines = math.prod(self.dims[:-1])
        self.values = -(-self.line * lines // self.unit) * self.unit // 8
        self.grid = [-(-n // s) for n, s in zip(self.dims, self.sizes)]
        blocks = math.prod(self.grid) if self.block else 1
        self.raw = self.rng.integers(0, 256, self.values, np.uint8)
        if self.field == 8 and VALUES[self.value] < 8 and self.value not in FLOATS:
            bits = VALUES[self.value] # a whole number, with its sign
            low = self.raw & ((1 << bits) - 1)
            self.raw = np.where(low >> (bits - 1), low.astype(np.int64) - (1 << bits), low).astype(
                np.int8).view(np.uint8)
            if self.store == "PackedNative":
                self.raw &= (1 << bits) - 1
        self.scales = self.random_scales(self.stored_scale, blocks)
        self.factor = self.random_scales(self.tensor_scale, 1) if (
            self.block and self.tensor_scale) else np.zeros(0, np.uint8)

    def random_scales(self, kind, count):
        if kind == "UE8M0":
            return self.rng.integers(0, 256, count, np.uint8)
        if kind == "UE4M3":
            return self.rng.integers(0, 256, count, np.uint8)
        x = self.rng.normal(0, 0.1, count).astype(np.float32)
        if kind == "F32":
            return x.view(np.uint8)
        if kind == "F16":
            return x.astype("<f2").view(np.uint8)
        return (x.view(np.uint32) >> 16).astype("<u2").view(np.uint8)

    def data(self):
        return self.raw.tobytes() + self.scales.tobytes() + self.factor.tobytes()

    @functools.cached_property
    def decoded(self):
        """Each element, looked up at its place."""
        shape = self.shape or (1, )
        stream = int.from_bytes(self.raw.tobytes(), "little")
        scales = scales_of(self.scales, self.stored_scale)
        factor = scales_of(self.factor, self.tensor_scale)[0] if len(self.factor) else None
        out = np.zeros(shape, np.float32)
        for place in itertools.product(*map(range, shape)):
            at = exchanged(place, self.packed)
            line = block = 0
            for i, n in enumerate(self.dims[:-1]):
                line = line * n + at[i]
            for i, n in enumerate(self.grid):
                block = block * n + at[i] // self.sizes[i]
            code = stream >> (line * self.line + at[-1] * self.field) & 255
            scale = scales[block] if self.block else scales[0]
            if factor is not None:
                scale = np.float32(scale * factor)
            out[place] = number_of(code, self.value) * scale
        return out.reshape(self.shape)

    def scheme(self, release):
        store = {self.store: self.packed} if self.store != "Native" else "Native"
        if release == "0.19" and self.store == "PackedU32":
            store = "U32"
        storage = list(self.block or ()) + [1] * (5 - len(self.block or ()))
        size = {"storage": storage, "len": len(self.block or ())}
        if release == "0.22":
            own = {"size": size, "dtype": self.scale} if self.block else None
            return {"value": self.value, "store": store, "mode": "Symmetric",
                    "tensor": self.tensor_scale if self.block else self.scale, "block": own}
        level = "Tensor" if not self.block else {"Block": size}
        if self.block and self.tensor_scale:
            level = {"BlockTensor": {"block": size, "global": self.tensor_scale}}
        return {"value": self.value, "param": self.scale, "store": store, "level": level,
                "mode": "Symmetric"}


def write(path, tensors, release, **changes):
    """Write a Burnpack of tensors by name, and an ordinary one."""
    listed = [("norm.weight", "f32", (3, ), np.ones(3, np.float32).tobytes())]
    stored = {}
    for name, t in tensors.items():
        listed.append((name, "u8", t.shape, t.data()))
        stored[name] = {"QFloat": {**t.scheme(release), **changes}}
    dialect = {"0.22-pre.2": "0.22"}.get(release, release)
    path.write_bytes(Pack(listed, dialect, stored=stored, ids={n: 7 for n in tensors}).bytes())


# ---- cases ------------------------------------------------------------------------------------

SHAPES = ((8, ), (4, 32), (2, 3, 64), (2, 2, 2, 8, 16), (2, 1152))


def stores_of(value):
    if value == "E2M1":
        return "PackedNative", "PackedU32"
    return ("Native", "PackedU32") if VALUES[value] == 8 else ("Native", "PackedNative",
                                                                "PackedU32")


def every_scheme(rng, release):
    """Yield what all releases read alike: whole words, runs as blocks."""
    for n, (value, scale) in enumerate(itertools.product(VALUES, SCALES)):
        for store in stores_of(value):
            if release == "0.19" and store == "PackedNative":
                continue
            shape = SHAPES[n % len(SHAPES)]
            options = dict(value=value, store=store, scale=scale)
            yield Tensor(rng, shape, **options)
            width = min(shape[-1], 128) // (1 + n % 2)
            yield Tensor(rng, shape, block=(width, ), **options)
            if len(shape) > 1 and shape[-1] < 256:
                yield Tensor(rng, shape, block=(shape[-2] // 2 or 1, shape[-1]), **options)
            if release in ("0.22-pre.2", "0.22"):
                yield Tensor(rng, shape, block=(width, ), tensor_scale="F32", **options)


def newest(rng):
    """Yield what Burn 0.22 alone defines: partial words and blocks, other dimensions."""
    for value in VALUES:
        for store in (*stores_of(value), *(("Native", ) if value == "E2M1" else ())):
            for shape in ((), (1, ), (5, ), (3, 5), (2, 3, 7), (2, 1025), (3, 2, 5, 4)):
                for packed in range(max(len(shape), 1) if store != "Native" else 1):
                    options = dict(value=value, store=store, packed=packed)
                    yield Tensor(rng, shape, **options)
                    if len(shape) > 1:
                        yield Tensor(rng, shape, block=(2, 3), scale="F16", **options)
                        yield Tensor(rng, shape, block=(2, 1), scale="UE4M3", tensor_scale="F32",
                                     **options)
                        yield Tensor(rng, shape, block=(4, ), scale="UE8M0", **options)


def older(rng):
    """Yield the forms of other programs and releases before 0.22, which their length tells."""
    yield Tensor(rng, (3, 3), "Q4S", "PackedU32", fills=False)
    yield Tensor(rng, (3, 3), "Q4S", "PackedU32", fills=True)
    yield Tensor(rng, (1, 13), "Q2F", "PackedU32", fills=False)
    yield Tensor(rng, (5, 7), "Q8S", "PackedU32", fills=False)
    yield Tensor(rng, (4, 64), "Q8F", "Native", block=(32, ), scale="F16", stored_scale="F32")
    yield Tensor(rng, (4, 64), "Q4F", "PackedU32", block=(32, ), scale="BF16", stored_scale="F32")
    yield Tensor(rng, (4, 8), "E2M1", "Native", pairs=True)
    yield Tensor(rng, (8, 5), "Q4S", "PackedU32", packed=1)
    bytes_of_words = Tensor(rng, (3, 7), "Q8S", "Native") # words without the last bytes
    bytes_of_words.store = "PackedU32"
    yield bytes_of_words


def rounded(t, dtype):
    kind, bits = decode.rounded(t.decoded, dtype)
    return decode.Stored(kind, bits.reshape(t.shape))


def differences(got, tensors, dtype):
    wanted = {name: rounded(t, dtype) for name, t in tensors.items()}
    got.pop("norm.weight")
    for complaint in models.differ(got, wanted, True):
        t = tensors.get(complaint.split(":")[0].split()[0])
        yield f"{complaint} ({t and (t.shape, t.value, t.store, t.packed, t.block, t.scale)})"


def is_in_range(t, dtype):
    """Return whether no finite number becomes infinite in the type."""
    return not np.any(np.isfinite(t.decoded) & np.isinf(decode.numbers(rounded(t, dtype))))


def decodes(scratch, title, tensors, release):
    source = scratch / "m.bpk"
    every = {f"w{i}": t for i, t in enumerate(tensors)}
    for dtype in ("bf16", "f32"):
        tensors = {n: t for n, t in every.items() if is_in_range(t, dtype.upper())}
        assert len(tensors) > 3
        write(source, tensors, release)
        out = scratch / f"{dtype}.safetensors"
        p = heft("convert", "-f", f"--dequantize={dtype}", source, out)
        if p.returncode:
            yield f"{title}, {dtype}: ends with {p.returncode}: {p.stderr[:300]}"
        else:
            yield from differences(models.unpack(out), tensors, dtype.upper())
    again = scratch / "again.bpk"
    p = heft("convert", "-f", "--dequantize", "--format-version", "0.22", source, again)
    ids = json.loads(heft("ls", "--json", again).stdout)["tensors"] if not p.returncode else []
    if any(t["attributes"].get("burn.param_id") != 7 for t in ids if t["name"] in tensors):
        yield f"{title}: a parameter has lost its id"
    if not ids:
        yield f"{title}: {p.stderr[:300]}"


def refused(rng):
    """Yield a title, a tensor, a release, changes to its scheme, a word of the reason, an exit
    code."""
    both = Tensor(rng, (2, 15), "Q4S", "PackedU32", fills=False)
    yield "lines padded in two ways", both, "0.21", {}, "differently", UNSUPPORTED
    blocks = Tensor(rng, (4, 64), "Q8S", block=(2, 32))
    yield "blocks that are no runs", blocks, "0.21", {}, "differently", UNSUPPORTED
    plain = Tensor(rng, (4, 8), "Q4F", "PackedU32")
    yield "a table", plain, "0.22", {"mode": "Lookup"}, "table", UNSUPPORTED
    short = Tensor(rng, (4, 8), "Q8F")
    short.raw = short.raw[:-1]
    yield "a byte too few", short, "0.22", {}, "does not have the bytes", INVALID
    zero = Tensor(rng, (4, 8), "Q8F", block=(8, ))
    zero.block = (0, )
    yield "a block of nothing", zero, "0.22", {}, "blocks without numbers", INVALID
    vector = Tensor(rng, (8, ), "Q8F", block=(8, ))
    vector.block = (1, 8)
    yield "a block of more dimensions", vector, "0.22", {}, "fewer dimensions", INVALID
    unknown = Tensor(rng, (4, 8), "Q8F")
    why = "no known release"
    yield "a value of the future", unknown, "0.22", {"value": "Q3F"}, why, UNSUPPORTED
    mixed = Tensor(rng, (4, 8), "Q8F")
    yield "keys of two releases", mixed, "0.22", {"level": "Tensor"}, why, UNSUPPORTED


def is_refused(scratch, t, release, changes, why, code):
    source, out = scratch / "m.bpk", scratch / "out.safetensors"
    write(source, {"blk.weight": t}, release, **changes)
    p = heft("convert", "--dequantize", source, out)
    if p.returncode != code or out.exists():
        yield f"ends with {p.returncode}, not {code}: {p.stderr[:300]}"
    if why not in p.stderr or "'blk.weight'" not in p.stderr:
        yield f"{why}, or the tensor, is not said: {p.stderr[:300]}"
    p = heft("convert", source, out)
    if p.returncode != UNSUPPORTED or "--dequantize" not in p.stderr:
        yield f"as stored: ends with {p.returncode}: {p.stderr[:300]}"
    listed = heft("ls", source)
    if "blk.weight" not in listed.stdout:
        yield f"ls: ends with {listed.returncode}: {listed.stderr[:300]}"


def run(check, *args):
    with tempfile.TemporaryDirectory() as scratch:
        return list(check(pathlib.Path(scratch), *args))


def main():
    np.seterr(all="ignore") # infinite and subnormal numbers are wanted
    rng = np.random.default_rng(5)
    results = [(f"every scheme of {release}",
                run(decodes, release, list(every_scheme(rng, release)), release))
               for release in RELEASES]
    results.append(("partial words and blocks, and dimensions, of 0.22",
                    run(decodes, "0.22", list(newest(rng)), "0.22")))
    results.append(("forms before 0.22", run(decodes, "0.21", list(older(rng)), "0.21")))
    results += [(f"refused: {title}", run(is_refused, *args)) for title, *args in refused(rng)]
    return tap.report(results)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
