#!/usr/bin/env python3
"""gen_dcp.py ROOT: write indexes of distributed checkpoints of PyTorch (.metadata) to ROOT/torch.

Neither Heft nor PyTorch is used: the classes of gen_torch.py and of this file stand in. The samples
are indexes alone, without the files of the ranks: each breaks a rule of the index, and one breaks
none, so that the missing file is what verify reports."""
import pickle
import sys

import gen_torch
from samples import Samples


class Fields:
    """An object that pickles as a call of its class, and a dict of fields."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


class Properties:
    """TensorProperties has a tuple as its state."""

    def __init__(self, dtype):
        self.state = (dtype, None, False, None, False)

    def __getstate__(self):
        return self.state


def classes(*names):
    return {n: type(n, (Properties if n == "TensorProperties" else Fields,), {}) for n in names}


for name in ("torch.distributed", "torch.distributed.checkpoint"):
    gen_torch.module(name)
META = gen_torch.module("torch.distributed.checkpoint.metadata",
                        **classes("Metadata", "TensorStorageMetadata", "ChunkStorageMetadata",
                                  "BytesStorageMetadata", "MetadataIndex", "TensorProperties"))
FILES = gen_torch.module("torch.distributed.checkpoint.filesystem", **classes("_StorageInfo"))
TORCH = gen_torch.TORCH
SIZE = TORCH.Size


def chunk(offsets, sizes):
    return META.ChunkStorageMetadata(offsets=SIZE(offsets), sizes=SIZE(sizes))


def info(offset=0, length=600, path="__0_0.distcp", **more):
    return FILES._StorageInfo(relative_path=path, offset=offset, length=length, **more)


def index(name, offset):
    return META.MetadataIndex(fqn=name, offset=None if offset is None else SIZE(offset), index=0)


def checkpoint(chunks=(((0, 0), (3, 5)), ((3, 0), (4, 5))), size=(7, 5), **more):
    """The tensor "w" in rows, of which each piece has 600 bytes; and an object."""
    w = META.TensorStorageMetadata(properties=META.TensorProperties(TORCH.float32),
                                   size=SIZE(size), chunks=[chunk(*c) for c in chunks])
    storage = {index("w", c[0]): info(600 * i) for i, c in enumerate(chunks)}
    storage[index("step", None)] = info(6000, 20)
    fields = {"state_dict_metadata": {"w": w, "step": META.BytesStorageMetadata()},
              "planner_data": {"w": ("w",)}, "storage_data": storage, "storage_meta": None,
              "version": "1.0.0", **more}
    return META.Metadata(**fields)


def changed(change):
    m = checkpoint()
    change(m, m.state_dict_metadata["w"])
    return m


def items(m, keep=lambda k: True, **values):
    """Keep entries of storage_data, with other values of the first."""
    m.storage_data = {k: v for k, v in m.storage_data.items() if keep(k)}
    next(iter(m.storage_data.values())).__dict__.update(values)


def tensor(w, **values):
    w.__dict__.update(values)


def add_item(m, key, value):
    m.storage_data[key] = value


CHANGES = {
    "gap": (lambda m, w: w.chunks.pop(), "elements in no piece"),
    "no_chunk": (lambda m, w: w.chunks.clear(), "a tensor without pieces"),
    "shape": (lambda m, w: tensor(w, size=SIZE((7, 6))), "a shape that the pieces do not fill"),
    "outside": (lambda m, w: tensor(w, size=SIZE((6, 5))), "a piece outside of the tensor"),
    "rank": (lambda m, w: tensor(w, size=SIZE((35,))), "pieces of another rank"),
    "shape_vast": (lambda m, w: tensor(w, size=SIZE((2**40, 2**40))), "a shape of 2^80 elements"),
    "size_negative": (lambda m, w: tensor(w, size=SIZE((-7, 5))), "a negative size"),
    "size_none": (lambda m, w: tensor(w, size=None), "no size"),
    "chunks_tuple": (lambda m, w: tensor(w, chunks=tuple(w.chunks)), "chunks in a tuple"),
    "chunk_other": (lambda m, w: w.chunks.append(5), "a chunk that is a number"),
    "offset_negative": (lambda m, w: tensor(w, chunks=[chunk((-1, 0), (7, 5))]),
                        "a negative offset"),
    "nowhere": (lambda m, w: items(m, lambda k: k.fqn != "w"), "pieces without storage"),
    "object_nowhere": (lambda m, w: items(m, lambda k: k.fqn == "w"), "an object without storage"),
    "twice": (lambda m, w: add_item(m, index("w", (0, 0)), info()), "a piece stored twice"),
    "folder": (lambda m, w: items(m, relative_path="../__0_0.distcp"), "a file outside"),
    "no_path": (lambda m, w: items(m, relative_path=None), "a range without a file"),
    "length_vast": (lambda m, w: items(m, length=2**62), "a range of 2^62 bytes"),
    "length_none": (lambda m, w: items(m, length=None), "a range without a length"),
    "key_text": (lambda m, w: add_item(m, "w", info()), "a key of storage_data that is a text"),
    "value_text": (lambda m, w: add_item(m, index("v", (0,)), "x"), "a range that is a text"),
    "name_number": (lambda m, w: m.state_dict_metadata.update({5: w}), "a name that is a number"),
    "entry_text": (lambda m, w: m.state_dict_metadata.update(v="x"), "an entry that is a text"),
    "entries_list": (lambda m, w: m.__dict__.update(state_dict_metadata=[]), "a list of entries"),
    "no_storage": (lambda m, w: m.__dict__.update(storage_data=None), "no storage_data"),
    "call": (lambda m, w: m.__dict__.update(version=gen_torch.Call(gen_torch.OWN.make, 1)),
             "a call of another function"),
}


def main():
    s = Samples(sys.argv[1], "torch")
    overlap = checkpoint((((0, 0), (4, 5)), ((3, 0), (4, 5))))
    s.bad("dcp_overlap.metadata", pickle.dumps(overlap, 2), "reject", "two pieces of an element")
    s.bad("dcp_alone.metadata", pickle.dumps(checkpoint(), 2), "reject", "no file of a rank",
          rule="heft/file-missing")
    for name, (change, why) in CHANGES.items():
        s.bad(f"dcp_{name}.metadata", pickle.dumps(changed(change), 2), "reject", why)
    zipped = checkpoint()
    items(zipped, transform_descriptors=["stream.rot13"])
    s.bad("dcp_transform.metadata", pickle.dumps(zipped, 2), "refuse", "an unknown transform")
    other = checkpoint()
    other.state_dict_metadata["w"].properties = META.TensorProperties(TORCH.quint4x2)
    s.bad("dcp_type.metadata", pickle.dumps(other, 4), "reject", "a type that heft lacks",
          rule="torch/unreadable")
    cut = pickle.dumps(checkpoint(), 4)
    s.bad("dcp_cut.metadata", cut[:-40], "reject", "a truncated pickle")


if __name__ == "__main__":
    main()
