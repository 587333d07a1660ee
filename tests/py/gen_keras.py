#!/usr/bin/env python3
"""gen_keras.py ROOT: write HDF5 files as Keras does to ROOT/keras, with h5py, and broken ones.

Nothing is written without h5py. Each broken file is one that verify rejects or that is refused."""
import io
import sys
import zipfile

from samples import Samples, tensor

try:
    import h5py
    import numpy
except ImportError:
    sys.exit(0)

TYPES = {"f32": "<f4", "f16": "<f2", "i64": "<i8", "u8": "u1"}


def hdf5(fill, **options):
    buf = io.BytesIO()
    with h5py.File(buf, "w", **options) as f:
        fill(f)
    return buf.getvalue()


def archive(content, **more):
    buf = io.BytesIO()
    with zipfile.ZipFile(buf, "w", more.pop("method", zipfile.ZIP_STORED)) as z:
        for name, text in {"metadata.json": '{"keras_version":"3.1.0"}',
                           "config.json": '{"class_name":"Functional"}', **more}.items():
            z.writestr(zipfile.ZipInfo(name), text, z.compression)
        if content is not None:
            z.writestr(zipfile.ZipInfo("model.weights.h5"), content, z.compression)
    return buf.getvalue()


def array(t):
    return numpy.frombuffer(t[3], TYPES[t[1]]).reshape(t[2])


TENSORS = [tensor("layers/dense/vars/0", "f32", (3, 4)), tensor("layers/dense/vars/1", "f32", (4,)),
           tensor("layers/norm/vars/0", "f16", (4,)), tensor("step", "i64", ())]


def plain(f):
    for t in TENSORS:
        f[t[0]] = array(t)
    f["layers/dense/vars"].attrs["name"] = "dense"


def chunked(f):
    for t in TENSORS:
        more = {"chunks": (2,) * len(t[2]), "shuffle": True, "compression": "gzip",
                "fletcher32": True} if t[2] else {}
        f.create_dataset(t[0], data=array(t), **more)


def good(s):
    s.good("plain.weights.h5", hdf5(plain), TENSORS)
    s.good("latest.weights.h5", hdf5(plain, libver="latest"), TENSORS)
    s.good("block.h5", hdf5(plain, userblock_size=1024), TENSORS)
    s.good("chunks.h5", hdf5(chunked), TENSORS)
    s.good("stored.keras", archive(hdf5(plain)), TENSORS)
    s.good("deflated.keras", archive(hdf5(chunked), method=zipfile.ZIP_DEFLATED), TENSORS)


def damaged_chunk(name, at, value, **filters):
    buf = io.BytesIO()
    with h5py.File(buf, "w") as f:
        d = f.create_dataset("x", data=numpy.arange(500.0), chunks=(100,), **filters)
        chunk = d.id.get_chunk_info(3)
    data = bytearray(buf.getvalue())
    data[chunk.byte_offset + at] ^= value
    return name, bytes(data)


def replaced(data, old, new):
    """Put other bytes in the one place of `old`."""
    if data.count(old) != 1 or len(old) != len(new):
        raise ValueError(old)
    return data.replace(old, new)


def rejected(s):
    data = hdf5(plain)
    content = TENSORS[0][3]
    at = data.index(content).to_bytes(8, "little")
    layout = at + len(content).to_bytes(8, "little")

    def bad(name, data, why, rule="keras/structure"):
        s.bad(name, data, "reject", why, rule)
    bad("cut.h5", data[:len(data) // 2], "half of the file")
    bad("signature.h5", data[:8], "nothing after the signature")
    bad("version.h5", data[:8] + b"\x63" + data[9:], "a superblock of an unknown version")
    bad("past_end.h5", replaced(data, layout, (1 << 40).to_bytes(8, "little") + layout[8:]),
        "elements past the end")
    bad("short.h5", replaced(data, layout, at + (8).to_bytes(8, "little")),
        "fewer bytes than the shape takes")
    bad("heap.h5", data.replace(b"HEAP", b"HEAQ"), "no heap of names")
    bad("tree.h5", data.replace(b"TREE", b"TREF"), "no tree of names")
    name, damaged = damaged_chunk("sum.h5", 40, 1, fletcher32=True)
    bad(name, damaged, "a chunk with another Fletcher-32", "keras/fletcher32")
    name, damaged = damaged_chunk("inflate.h5", 20, 0x55, compression="gzip")
    bad(name, damaged, "a chunk that does not inflate", "keras/chunk")
    packed = archive(data)
    bad("crc.keras", replaced(packed, content, bytes(len(content))), "another CRC-32 of weights",
        "keras/crc32")
    bad("text.keras", packed.replace(b"3.1.0", b"3.1.1"), "another CRC-32 of a text", "keras/crc32")


def refused(s):
    def bad(name, fill, why, **more):
        s.bad(name, hdf5(fill, **more), "refuse", why)

    def link(f):
        f["x"] = h5py.ExternalLink("secret.h5", "/x")

    def storage(f):
        f.create_dataset("x", (4,), "f8", external=[("raw.bin", 0, 32)])

    def virtual(f):
        layout = h5py.VirtualLayout((4,), "f8")
        layout[:] = h5py.VirtualSource("secret.h5", "x", (4,))
        f.create_virtual_dataset("x", layout)

    def lzf(f):
        f.create_dataset("x", data=numpy.zeros(1000), compression="lzf")

    def references(f):
        f["a"] = [b"text"]
        f["x"] = numpy.array([f["a"].ref], h5py.ref_dtype)

    def texts(f):
        f.create_dataset("x", data=["a", "bc"], dtype=h5py.string_dtype())

    def ragged(f):
        f.create_dataset("x", (2,), h5py.vlen_dtype("f4"))[0] = [1, 2]

    def records(f):
        f["kind"] = numpy.dtype([("a", "i4"), ("b", "f4")])
        f.create_dataset("x", (2,), f["kind"])

    def opaque(f):
        f["x"] = numpy.zeros(2, "V3")

    def unwritten(f):
        f.create_dataset("x", (1 << 40,), "f8")

    def many_chunks(f):
        f.create_dataset("x", (1 << 30,), "u1", chunks=(1,))[0] = 1
    bad("link.h5", link, "a link into another file")
    bad("storage.h5", storage, "elements in another file")
    bad("virtual.h5", virtual, "elements of another file", libver="latest")
    for fill in (lzf, references, texts, ragged, records, opaque, unwritten, many_chunks):
        bad(f"{fill.__name__}.h5", fill, "no array of numbers that is read")


def main():
    s = Samples(sys.argv[1], "keras")
    good(s)
    rejected(s)
    refused(s)


main()
