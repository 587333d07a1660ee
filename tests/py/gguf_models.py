"""gguf_models.py - small language models as GGUF files, with the names and metadata of llama.cpp,
and a reader of such files, both written from the published description of the format."""
import struct

import numpy

import ggml_blocks

KINDS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
U32, F32, STR, ARRAY = 4, 6, 8, 9
ALIGN = 32


# ---- writing

def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    """Encode a number, a text, or a list of numbers or texts."""
    if isinstance(v, str):
        return struct.pack("<I", STR) + text(v)
    if isinstance(v, list):
        inner = [value(x) for x in v]
        return struct.pack("<I", ARRAY) + inner[0][:4] + struct.pack("<Q", len(v)) + b"".join(
            x[4:] for x in inner)
    kind = F32 if isinstance(v, float) else U32
    return struct.pack("<I", kind) + struct.pack("<" + KINDS[kind], v)


def write(path, meta, tensors):
    """Write f32, f16 and bf16 (as u16) arrays, or pairs of a shape and (type, bytes)."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(meta))
    for key, v in meta.items():
        head += text(key) + value(v)
    data, at = [], 0
    for name, array in tensors.items():
        kinds = {"float32": "f32", "float16": "f16", "uint16": "bf16", "int32": "i32"}
        shape, kind, raw = ((array.shape, kinds[array.dtype.name], array.tobytes())
                            if isinstance(array, numpy.ndarray) else array)
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", ggml_blocks.TYPES[kind][0], at)
        raw += bytes(-len(raw) % ALIGN)
        data.append(raw)
        at += len(raw)
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % ALIGN) + b"".join(data))


# ---- reading

class Reader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.raw = file.read()
        self.at = 0
        magic, version, tensors, values = self.take("4sIQQ")
        if magic != b"GGUF" or version != 3:
            raise ValueError(f"{path}: not GGUF 3")
        self.meta = dict(self.entry() for _ in range(values))
        infos = [self.info() for _ in range(tensors)]
        start = self.at + -self.at % self.meta.get("general.alignment", ALIGN)
        self.tensors = {}
        for name, shape, kind, offset in infos:
            _, elements, size = ggml_blocks.TYPES[kind]
            length = int(numpy.prod(shape)) // elements * size
            self.tensors[name] = (shape, kind, self.raw[start + offset:start + offset + length])

    def take(self, letters):
        values = struct.unpack_from("<" + letters, self.raw, self.at)
        self.at += struct.calcsize("<" + letters)
        return values

    def text(self):
        n, = self.take("Q")
        return self.take(f"{n}s")[0].decode()

    def value(self, kind):
        if kind == STR:
            return self.text()
        if kind == ARRAY:
            inner, n = self.take("IQ")
            return [self.value(inner) for _ in range(n)]
        return self.take(KINDS[kind])[0]

    def entry(self):
        key = self.text()
        return key, self.value(self.take("I")[0])

    def info(self):
        name = self.text()
        rank, = self.take("I")
        shape = tuple(reversed(self.take(f"{rank}Q")))
        number, offset = self.take("IQ")
        return name, shape, ggml_blocks.NAMES[number], offset


# ---- models

def metadata(arch, layers, heads, kv_heads, width, hidden, experts=0):
    own = {"context_length": 64, "embedding_length": width, "block_count": layers,
           "feed_forward_length": hidden, "attention.head_count": heads,
           "attention.head_count_kv": kv_heads, "attention.layer_norm_rms_epsilon": 1e-5,
           "attention.layer_norm_epsilon": 1e-5, "vocab_size": 96,
           "rope.dimension_count": width // heads}
    if experts:
        own.update({"expert_count": experts, "expert_used_count": 2,
                    "expert_feed_forward_length": hidden})
    return {"general.architecture": arch, "general.name": "small",
            **{f"{arch}.{key}": v for key, v in own.items()}}


def model(arch, layers=8, heads=4, kv_heads=1, width=256, hidden=512, experts=0, tied=False,
          fused=False, rows=None, seed=1):
    """Return metadata and tensors of a model of the shape of llama, qwen, gemma or falcon.

    rows: the rows of each matrix of a layer, instead of those that its place needs."""
    r = numpy.random.default_rng(seed)
    tensors = {}

    def add(name, *shape):
        if rows and len(shape) > 1 and name.startswith("blk."):
            shape = (*shape[:-2], rows, shape[-1])
        tensors[name] = (r.standard_normal(shape) * 0.02).astype(numpy.float32)

    add("token_embd.weight", 96, width)
    add("output_norm.weight", width)
    if not tied:
        add("output.weight", 96, width)
    kv = width // heads * kv_heads
    for i in range(layers):
        b = f"blk.{i}."
        add(b + "attn_norm.weight", width)
        if fused:
            add(b + "attn_qkv.weight", width + 2 * kv, width)
        else:
            add(b + "attn_q.weight", width, width)
            add(b + "attn_k.weight", kv, width)
            add(b + "attn_v.weight", kv, width)
        add(b + "attn_output.weight", width, width)
        add(b + "ffn_norm.weight", width)
        stack = (experts,) if experts else ()
        end = "_exps.weight" if experts else ".weight"
        if experts:
            add(b + "ffn_gate_inp.weight", experts, width)
        add(b + "ffn_gate" + end, *stack, hidden, width)
        add(b + "ffn_up" + end, *stack, hidden, width)
        add(b + "ffn_down" + end, *stack, width, hidden)
    return metadata(arch, layers, heads, kv_heads, width, hidden, experts), tensors


def importance(tensors, seed=2):
    """Return the importance of the columns of all matrices but the embedding: sums and counts."""
    r = numpy.random.default_rng(seed)
    out = {}
    for name, array in tensors.items():
        if array.ndim < 2 or "norm" in name or name.startswith(("token_embd", "output")):
            continue
        matrices = array.shape[0] if array.ndim == 3 else 1
        sums = r.random((matrices, array.shape[-1]), numpy.float32) * 40
        counts = r.integers(1, 9, (matrices, 1)).astype(numpy.float32)
        out[name] = (sums, counts)
    return out


def write_importance(path, entries):
    """Write it as llama-imatrix does: ggml has no last dimension of 1."""
    tensors = {}
    for name, (sums, counts) in entries.items():
        tensors[name + ".in_sum2"], tensors[name + ".counts"] = (
            a[0] if len(a) == 1 else a for a in (sums, counts))
    write(path, {"general.type": "imatrix", "imatrix.datasets": ["wiki.txt", "more.txt"],
                 "imatrix.chunk_count": 7, "imatrix.chunk_size": 512}, tensors)


def write_old_importance(path, entries, chunks=7, dataset="wiki.txt"):
    """Write imatrix.dat: sums times calls, for each entry the calls of its first matrix."""
    with open(path, "wb") as out:
        out.write(struct.pack("<i", len(entries)))
        for name, (sums, counts) in entries.items():
            calls = int(counts[0, 0])
            out.write(struct.pack("<i", len(name)) + name.encode())
            out.write(struct.pack("<ii", calls, sums.size) + sums.astype("<f4").tobytes())
        out.write(struct.pack("<ii", chunks, len(dataset)) + dataset.encode())
