"""samples.py DIR: write small files of weights for the cases, with the standard library alone.

Cases can import the module: write_safetensors() takes {name: (dtype, shape, bytes)}."""
import json
import pathlib
import struct
import sys
import zipfile


def write_safetensors(path, tensors, metadata=None):
    header, blob = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + blob)


def f32(*values):
    return struct.pack("<%df" % len(values), *values)


def i64(*values):
    return struct.pack("<%dq" % len(values), *values)


def write_nested(path, model_is="dict"):
    """Write a PyTorch checkpoint: a storage of six numbers, and tensors that are views of the
    storage. The members of the model are in a dictionary, are attributes of an object, or are
    items of an object."""
    def text(s):
        return b"X" + struct.pack("<I", len(s)) + s.encode()

    def view(size, stride):
        numbers = [b"(" + b"".join(b"K" + bytes([n]) for n in t) + b"t" for t in (size, stride)]
        storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text(
            "cpu") + b"K\x06tQ"
        return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0" + b"".join(
            numbers) + b"\x89NtR"

    model = b"}(" + text("weight") + view((2, 3), (3, 1)) + text("turned") + view(
        (3, 2), (1, 3)) + text("head") + b"}(" + text("bias") + view((4,), (1,)) + b"uu"
    if model_is == "attributes":
        model = b"cown\nThing\n)\x81" + model + b"b"
    elif model_is == "items":
        model = b"cown\nTable\n)\x81" + model[1:]
    optimizer = b"}(" + text("state") + b"}K\0}" + text("step") + view(
        (1,), (1,)) + b"ss" + text("param_groups") + b"]u"
    pickled = b"\x80\x02}(" + text("model") + model + text("optimizer") + optimizer + text(
        "epoch") + b"K\x07u."
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("nested/data.pkl", pickled)
        z.writestr("nested/data/0", f32(0, 1, 2, 3, 4, 5))
        z.writestr("nested/version", "3\n")


class Stream:
    """An output without positions: zipfile then writes sizes after each member, as PyTorch does."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += data
        return len(data)

    def flush(self):
        pass


def pickled_text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def torch_members(tensors, more=b""):
    """Return the members of a PyTorch archive. tensors: {name: (class of the storage, elements,
    bytes)}, of one dimension; more: pickled keys and values."""
    items, storages = b"", []
    for i, (name, (kind, n, data)) in enumerate(tensors.items()):
        count = b"J" + struct.pack("<i", n)
        items += pickled_text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text(
            "storage") + b"ctorch\n" + kind.encode() + b"\n" + pickled_text(
                str(i)) + pickled_text("cpu") + count + b"tQK\0" + count + b"\x85K\x01\x85\x89NtR"
        storages.append((f"data/{i}", data))
    return [("data.pkl", b"\x80\x02}(" + items + more + b"u."), *storages, ("version", b"3\n")]


def zip_stream(members, folder="m/", method=zipfile.ZIP_STORED):
    """Return an archive with sizes after each member."""
    out = Stream()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members:
            z.writestr(folder + name, data)
    return out.data


NAN, INF = float("nan"), float("inf")

HOSTILE = ["", "plain", "new\nline", "tab\tand \"quotes\"", "back\\slash", "escape \x1b[31m red",
           "nul-like \x01\x7f", "\u00e9t\u00e9 \u65e5\u672c \U0001f680", "turn \u202e around",
           "-starts-with-dash", "a" * 300]


def write_two(path):
    write_safetensors(path, {
        "layer.weight": ("F32", [2, 3], f32(1, 2, 3, 4, 5, 6.5)),
        "layer.bias": ("F32", [3], f32(-1, 0, 0.25)),
        "ids": ("I64", [4], i64(-1, 0, 1, 2 ** 53 + 1)),
    }, {"license": "MIT", "note": "caf\u00e9"})


TOKENS = ["[PAD]", "the", "##ing", "caf\u00e9", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONFIG = {"_name_or_path": "somebody/tiny-bert", "hidden_size": 4, "vocab_size": len(TOKENS),
          "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
          "max_position_embeddings": 6, "layer_norm_eps": 1e-12, "architectures": ["BertModel"]}


def write_bert(folder):
    """Write a model folder: one layer of size 4, prefix "bert.", and a buffer that is not a
    weight."""
    hidden, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": [len(TOKENS), hidden],
              "embeddings.position_embeddings.weight": [6, hidden],
              "embeddings.LayerNorm.weight": [hidden],
              "encoder.layer.0.intermediate.dense.weight": [inner, hidden],
              "encoder.layer.0.output.dense.weight": [hidden, inner]}
    tensors = {"bert.embeddings.position_ids": ("I64", [1, 6], i64(*range(6)))}
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors["bert." + name] = ("F32", shape, f32(*[i / 8 - 1 for i in range(count)]))
    folder.mkdir()
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("".join(t + "\n" for t in TOKENS), encoding="utf-8")
    added = [{"id": i, "content": t, "special": True} for i, t in enumerate(TOKENS) if t[0] == "["]
    vocab = {t: i for i, t in reversed(list(enumerate(TOKENS)))}
    (folder.parent / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "added_tokens": added, "model": {"type": "WordPiece", "vocab": vocab}}))


def write_all(folder):
    folder = pathlib.Path(folder)
    write_two(folder / "two.safetensors")
    write_safetensors(folder / "small.safetensors", {
        "w": ("F32", [2, 2], f32(1, 2, 3, 4)), "h": ("F16", [2], struct.pack("<2e", 0.5, -2))})
    write_safetensors(folder / "types.safetensors", {
        "b": ("BOOL", [3], b"\1\0\1"), "u8": ("U8", [2], b"\0\xff"),
        "bf": ("BF16", [3], bytes.fromhex("803f004040c0")),
        "f8": ("F8_E4M3", [4], bytes.fromhex("3840b800")),
        "scalar": ("F64", [], struct.pack("<d", 0.1)), "none": ("F32", [0, 4], b""),
        "odd": ("F32", [5], f32(NAN, INF, -INF, 1e-30, 3))})
    write_safetensors(folder / "hostile.safetensors",
                      {name: ("U8", [1], b"x") for name in HOSTILE}, {"k\n\"": "v\u2028\x1b"})
    write_safetensors(folder / "large.safetensors", {
        "grid": ("F32", [40, 50], f32(*[i * 0.5 for i in range(2000)])),
        "line": ("I64", [1001], i64(*range(1001)))})
    write_safetensors(folder / "none.safetensors", {})
    (folder / "empty.safetensors").write_bytes(b"")
    (folder / "page.safetensors").write_text("<!DOCTYPE html>\n<html><body>404</body></html>\n")
    (folder / "pointer.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n")
    write_bert(folder / "bert")
    cut = (folder / "two.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(cut[:-8])
    (folder / "header.safetensors").write_bytes(cut[:60])


if __name__ == "__main__":
    write_all(sys.argv[1])
