#!/usr/bin/env python3
"""gen_torch_tar.py ROOT: write tar archives of PyTorch before 0.1.11 to ROOT/torch.

The archives are made with pickle and tarfile, without Heft and PyTorch, by the layout that
legacy_load() in torch/serialization.py reads. PyTorch loads those with "judge" in FILE.json too
(check_torch.py)."""
import collections
import io
import pickle
import struct
import sys
import tarfile

from samples import Samples

# class prefix, Heft's name, bytes
TYPES = [("Float", "f32", 4), ("Double", "f64", 8), ("Half", "f16", 2), ("Long", "i64", 8),
         ("Int", "i32", 4), ("Short", "i16", 2), ("Char", "i8", 1), ("Byte", "u8", 1)]
SIZE = {name: (short, size) for name, short, size in TYPES}
MEMBERS = ("sys_info", "pickle", "tensors", "storages")
FLOATS = bytes(i * 37 % 128 for i in range(96))


class Name:
    """A global of torch."""

    def __init__(self, name, module="torch"):
        self.name, self.module = name, module


class Tensor:
    def __init__(self, key):
        self.key = key


class Pickler(pickle._Pickler):
    """Write tensor numbers as text for persistent ids, and globals without importing modules."""

    modules = ()

    def persistent_id(self, obj):
        return str(obj.key) if isinstance(obj, Tensor) else None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Name):
            self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())
            return
        super().save(obj, save_persistent_id)


def dump(value, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(value)
    return out.getvalue()


def storage(key, kind, data, count=None, location="cpu", order="<", first=False):
    count = len(data) // SIZE.get(kind, (0, 1))[1] if count is None else count
    name = Name(f"{kind}Storage")
    return dump((key, name) if first else (key, location, name)) + struct.pack(order + "q",
                                                                               count) + data


def contiguous(shape):
    strides, step = [], 1
    for d in reversed(shape):
        strides.insert(0, step)
        step *= max(d, 1)
    return strides


def record(key, storage_key, shape, strides=None, offset=0, kind="Float", order="<", rank=None,
           first=False):
    strides = contiguous(shape) if strides is None else strides
    name = Name(f"{kind}Tensor")
    numbers = struct.pack(f"{order}{2 * len(shape) + 1}q", *shape, *strides, offset)
    if order == ">":
        head = struct.pack(">q", (len(shape) << 32))
    else:
        head = struct.pack("<i4x", len(shape) if rank is None else rank)
    return dump((key, name, storage_key) if first else (key, storage_key, name)) + head + numbers


def counted(items, count=None):
    return dump(len(items) if count is None else count) + b"".join(items)


def info(little=True, version=1000):
    return dump({
        "protocol_version": version, "little_endian": little,
        "type_sizes": {"short": 2, "int": 4, "long": 4}
    })


def archive(members, form=tarfile.PAX_FORMAT, pax=True, prefix=""):
    """Return a tar archive; a pax header precedes each member, because times have fractions."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=form) as tar:
        for name, data in members:
            entry = tarfile.TarInfo(prefix + name)
            entry.size = len(data)
            if pax and form == tarfile.PAX_FORMAT:
                entry.mtime = 1488888888.25
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def parts(value, storages, records, views=(), **more):
    made = {"sys_info": info(), "pickle": dump(value), "tensors": counted(records),
            "storages": counted(storages) + (b"" if views is None else dump(list(views)))}
    return {**made, **more}


def torch(value, storages, records, views=(), how=None, **more):
    made = parts(value, storages, records, views, **more)
    return archive([(name, made[name]) for name in MEMBERS if made[name] is not None], **(how
                                                                                          or {}))


def gather(data, size, shape, strides, offset):
    out = bytearray()

    def walk(level, at):
        if level == len(shape):
            out.extend(data[at * size:(at + 1) * size])
            return
        for i in range(shape[level]):
            walk(level + 1, at + i * strides[level])

    walk(0, offset)
    return bytes(out)


def plain():
    """Return (value, storages, records, tensors) of a model with weight and bias."""
    value = collections.OrderedDict([("weight", Tensor(201)), ("bias", Tensor(202))])
    storages = [storage(101, "Float", FLOATS[:24]), storage(102, "Double", FLOATS[24:40])]
    records = [record(201, 101, [2, 3]), record(202, 102, [2], kind="Double")]
    return value, storages, records, [("weight", "f32", (2, 3), FLOATS[:24]),
                                      ("bias", "f64", (2,), FLOATS[24:40])]


def good_plain(s):
    value, storages, records, listed = plain()
    s.good("tar.pt", torch(value, storages, records), listed, judge="torch")
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT)):
        s.good(f"tar_{name}.pt", torch(value, storages, records, how={"form": form}), listed,
               judge="torch")
    s.good("tar_named.pt", torch(value, storages, records, how={"prefix": "./", "pax": False}),
           listed)
    s.good("tar_no_info.pt", torch(value, storages, records, sys_info=None), listed, judge="torch")
    checkpoint = {
        "epoch": 3, "state_dict": value, "best": 0.5, "arch": "alexnet",
        "optimizer": {"state": {}, "param_groups": []}
    }
    under = [(f"state_dict.{t[0]}", *t[1:]) for t in listed]
    s.good("tar_checkpoint.pt", torch(checkpoint, storages, records), under, judge="torch")
    s.good("tar_short_end.pt",
           torch(value, storages, records, how={"pax": False}).rstrip(b"\0"), listed)
    for protocol in (0, 1, 3, 4):
        made = parts(value, storages, records, pickle=dump(value, protocol), sys_info=info())
        s.good(f"tar_protocol{protocol}.pt", archive(list(made.items())), listed,
               judge="torch" if protocol else None)
    more = [("README", b"words" * 200), *parts(value, storages, records).items()]
    s.good("tar_others.pt", archive(more[1:] + more[:1]), listed)


def good_types(s):
    storages, records, value, listed = [], [], {}, []
    for i, (kind, short, size) in enumerate(TYPES):
        data = FLOATS[:6 * size]
        storages.append(storage(i, kind, data))
        for j, shape in enumerate(((2, 3), (6,), (1, 6, 1))):
            key = 1000 + 10 * i + j
            value[f"{kind}{j}"] = Tensor(key)
            records.append(record(key, i, list(shape), kind=kind))
            listed.append((f"{kind}{j}", short, shape, data))
    s.good("tar_types.pt", torch(value, storages, records), listed, judge="torch")


VIEWS = {
    "whole": ((2, 3, 4), 0, None), "transposed": ((4, 3, 2), 0, (1, 4, 12)),
    "second": ((2, 3, 2), 1, (12, 4, 2)), "inside": ((2, 2), 5, (12, 4)),
    "row for all": ((5, 4), 8, (0, 1)), "last": ((4,), 20, (1,)),
    "ones": ((1, 4, 1), 4, (99, 1, 77)), "none": ((0, 4), 24, (4, 1)), "column": ((3, 1), 2, (4, 9))
}


def good_views(s):
    value, records, listed = {}, [], []
    for key, (name, (shape, offset, strides)) in enumerate(VIEWS.items(), 900):
        strides = list(strides or contiguous(shape))
        value[name] = Tensor(key)
        records.append(record(key, 5, list(shape), strides, offset))
        listed.append((name, "f32", shape, gather(FLOATS, 4, shape, strides, offset)))
    whole = [storage(5, "Float", FLOATS)]
    s.good("tar_views.pt", torch(value, whole, records), listed, judge="torch")
    # Views of storage 5: elements 8 to 19, and all elements.
    views = [(6, 5, 8, 12), (7, 5, 0, 24), (8, 5, 24, 0)]
    value = {
        "half": Tensor(1), "full": Tensor(2), "none": Tensor(3),
        "deep": [Tensor(1), {"x": Tensor(2)}]
    }
    records = [record(1, 6, [2, 3], offset=3), record(2, 7, [24]), record(3, 8, [0])]
    half, full = ("f32", (2, 3), FLOATS[44:68]), ("f32", (24,), FLOATS)
    listed = [("half", *half), ("full", *full), ("none", "f32", (0,), b""), ("deep.0", *half),
              ("deep.1.x", *full)]
    s.good("tar_storage_views.pt", torch(value, whole, records, views), listed, judge="torch")


def good_many_views(s):
    """The list of storages grows by many views; the last storage is empty."""
    value = {f"t{i}": Tensor(i) for i in range(12)}
    records = [record(i, 50 + i, [2], offset=i) for i in range(11)]
    records.append(record(11, 61, [1], [2**63 - 1], 11))
    views = [(50 + i, 5, 0, 24) for i in range(12)]
    listed = [(f"t{i}", "f32", (2,), FLOATS[4 * i:4 * i + 8]) for i in range(11)]
    listed.append(("t11", "f32", (1,), FLOATS[44:48]))
    s.good("tar_many_views.pt", torch(value, [storage(5, "Float", FLOATS)], records, views), listed)
    whole, empty = [storage(5, "Float", FLOATS)], [storage(6, "Byte", b"")]
    s.good("tar_empty_last.pt", torch({"w": Tensor(1)}, whole + empty, [record(1, 5, [24])], None),
           [("w", "f32", (24,), FLOATS)])


def good_empty(s):
    """Tensors without elements had no dimensions and perhaps no storage; PyTorch no longer loads
    tensors without a storage."""
    value, storages, records, listed = plain()
    value = {**value, "none": Tensor(1), "again": Tensor(2), "with": Tensor(3), "one": Tensor(4)}
    records += [
        record(1, None, []),
        record(2, None, [], kind="Half"),
        record(3, 103, []),
        record(4, 101, [], offset=2)
    ]
    storages += [storage(103, "Int", b"")]
    listed = [
        *listed, ("none", "f32", (0,), b""), ("again", "f16", (0,), b""),
        ("with", "i32", (0,), b""), ("one", "f32", (), FLOATS[8:12])
    ]
    s.good("tar_empty.pt", torch(value, storages, records), listed)
    s.good("tar_nothing.pt", torch({}, [], []), [], judge="torch")


def good_first(s):
    """Archives of the first version, and of big-endian machines."""
    value, _, _, listed = plain()
    storages = [
        storage(101, "Float", FLOATS[:24], first=True),
        storage(102, "Double", FLOATS[24:40], first=True)
    ]
    records = [
        record(201, 101, [2, 3], first=True),
        record(202, 102, [2], kind="Double", first=True)
    ]
    s.good("tar_first.pt", torch(value, storages, records, None), listed)
    swapped_floats = b"".join(FLOATS[i:i + 4][::-1] for i in range(0, 24, 4))
    swapped_doubles = b"".join(FLOATS[i:i + 8][::-1] for i in range(24, 40, 8))
    storages = [
        storage(101, "Float", swapped_floats, order=">"),
        storage(102, "Double", swapped_doubles, order=">")
    ]
    records = [record(201, 101, [2, 3], order=">"), record(202, 102, [2], kind="Double", order=">")]
    s.good("tar_big.pt", torch(value, storages, records, sys_info=info(False)), listed)


class Object:
    """An object that pickles as a call of a class, with a state."""

    def __init__(self, cls, args, state):
        self.cls, self.args, self.state = cls, args, state


class ObjectPickler(Pickler):
    def save(self, obj, save_persistent_id=True):
        if not isinstance(obj, Object):
            super().save(obj, save_persistent_id)
            return
        self.save(obj.cls, False)
        self.save(obj.args)
        self.write(pickle.NEWOBJ)
        if obj.state is not None:
            self.save(obj.state)
            self.write(pickle.BUILD)


def dump_objects(value):
    out = io.BytesIO()
    ObjectPickler(out, 2).dump(value)
    return out.getvalue()


class Class(Name):
    """The class of a module; the persistent id is (class, file, source)."""


def module(obj):
    """Return the pickle of the persistent id (class, None, None)."""
    out = io.BytesIO()
    ObjectPickler(out, 2).dump((obj, None, None))
    return out.getvalue()[2:-1] + b"Q"


def good_modules(s):
    _, storages, records, listed = plain()
    parameter = Name("Parameter", "torch.nn.parameter")
    variable = Name("Variable", "torch.autograd.variable")
    w = Object(parameter, (), (Tensor(201), None, None, True, False))
    b = Object(variable, (Tensor(202),), (True, False, None))
    data = dump_objects(collections.OrderedDict([("weight", w), ("bias", b)]))
    s.good("tar_variables.pt", torch({}, storages, records, pickle=data), listed, judge="torch")
    marker = "module-goes-here"
    state = {
        "_parameters": collections.OrderedDict([("weight", w), ("bias", b)]), "_buffers": {},
        "_modules": {}, "training": True
    }
    data = dump_objects(Object(Name(marker), (), state))
    data = data.replace(f"ctorch\n{marker}\n".encode(),
                        module(Name("Linear", "torch.nn.modules.linear")))
    s.good("tar_module.pt", torch({}, storages, records, pickle=data), listed)


def good_large(s):
    """Sizes in pax headers and in GNU's base 256, for small members."""
    value, storages, records, listed = plain()
    data = bytearray(torch(value, storages, records, how={"form": tarfile.GNU_FORMAT}))
    for at in list(headers(data)):
        size = int(data[at + 124:at + 135], 8)
        data[at + 124:at + 136] = b"\x80" + size.to_bytes(11, "big")
        check(data, at)
    s.good("tar_base256.pt", bytes(data), listed)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, member in parts(value, storages, records).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(member)
            entry.pax_headers = {"size": str(len(member)), "path": name, "comment": "\u00e4 = b"}
            tar.addfile(entry, io.BytesIO(member))
    s.good("tar_pax.pt", out.getvalue(), listed)
    many = {str(i): Tensor(i) for i in range(700)}
    numbers = [struct.pack("<f", i) for i in range(700)]
    storages = [storage(10000 + i, "Float", n) for i, n in enumerate(numbers)]
    records = [record(i, 10000 + i, [1]) for i in range(700)]
    s.good("tar_many.pt", torch(many, storages, records),
           [(str(i), "f32", (1,), n) for i, n in enumerate(numbers)], judge="torch")


# ---- bad --------------------------------------------------------------------------------------

def headers(data):
    at = 0
    while at < len(data) and any(data[at:at + 512]):
        yield at
        at += 512 + -(-int(data[at + 124:at + 135], 8) // 512) * 512


def check(data, at):
    data[at + 148:at + 156] = b" " * 8
    data[at + 148:at + 156] = b"%06o\0 " % sum(data[at:at + 512])


def bad_headers(s):
    value, storages, records, _ = plain()
    data = torch(value, storages, records, how={"form": tarfile.USTAR_FORMAT})
    at = list(headers(data))

    def changed(name, expect, why, i, offset, new, checked=True):
        made = bytearray(data)
        made[at[i] + offset:at[i] + offset + len(new)] = new
        if checked:
            check(made, at[i])
        s.bad(f"tar_{name}.pt", bytes(made), expect, why)

    changed("checksum", "reject", "a header whose checksum is wrong", 2, 100, b"0000755", False)
    changed("size_word", "reject", "a size that is not a number", 2, 124, b"x")
    changed("size_negative", "reject", "a size below zero", 2, 124, b"\xff" * 12)
    changed("size_vast", "reject", "a size of more than 64 bits", 2, 124, b"\x80\1" + bytes(10))
    changed("size_past", "reject", "a member past the end", 3, 124, b"77777777777\0")
    changed("size_256_past", "reject", "a member past the end, in base 256", 3, 124,
            b"\x80" + (2**63).to_bytes(11, "big"))
    changed("magic", "reject", "a header of a different archive format", 1, 257, b"other!")
    changed("twice", "reject", "two members with the same name", 3, 0, b"tensors\0")
    changed("link", "reject", "a member that is a link", 2, 156, b"2")
    changed("gone", "reject", "a missing member", 3, 0, b"storage\0\0")
    changed("prefix", "reject", "a member in a folder", 3, 345, b"folder")
    s.bad("tar_cut.pt", data[:at[3] + 300], "reject", "a truncated header")
    made = bytearray(torch(value, storages, records))
    pax = made.index(b" mtime=")
    for name, new in (("key", b" mtime-"), ("length", b"x")):
        broken = made[:pax] + new + made[
            pax + len(new):] if name == "key" else made[:pax - 2] + b"x9" + made[pax:]
        s.bad(f"tar_pax_{name}.pt", bytes(broken), "reject", "an invalid pax record")
    extra = [(f"more{i}", b"") for i in range(80)]
    s.bad("tar_many_members.pt", archive([*parts(value, storages, records).items(), *extra]),
          "refuse", "80 members more than PyTorch writes")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, member in parts(value, storages, records).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(member)
            entry.pax_headers = {"comment": "x" * (2 << 20)} if name == "pickle" else {}
            tar.addfile(entry, io.BytesIO(member))
    s.bad("tar_pax_vast.pt", out.getvalue(), "refuse", "a pax header of 2 MiB")


def bad_parts(s):
    value, storages, records, _ = plain()
    good = parts(value, storages, records)

    def bad(name, expect, why, **more):
        s.bad(f"tar_{name}.pt",
              archive([(n, d) for n, d in {**good, **more}.items() if d is not None]), expect, why)

    def stored(name, expect, why, *first, views=(), rest=None):
        rest = storages[1:] if rest is None else rest
        tail = b"" if views is None else dump(list(views)) if isinstance(views,
                                                                         (list, tuple)) else views
        bad(name, expect, why, storages=counted([*first, *rest]) + tail)

    def listed(name, expect, why, *first):
        bad(name, expect, why, tensors=counted([*first, records[1]]))

    bad("no_pickle", "reject", "an archive without the pickle", pickle=None)
    bad("no_tensors", "reject", "an archive without tensors", tensors=None)
    bad("no_storages", "reject", "an archive without storages", storages=None)
    bad("version", "refuse", "an unsupported version of the protocol", sys_info=info(version=1001))
    bad("version_text", "refuse", "a version that is not a number", sys_info=info(version="1000"))
    bad("info_cut", "reject", "a truncated pickle", sys_info=info()[:-1])
    bad("pickle_cut", "reject", "a truncated pickle", pickle=good["pickle"][:-1])
    bad("count_word", "reject", "a count that is a text", storages=dump("2") + good["storages"][5:])
    bad("count_negative", "reject", "a count below zero", tensors=dump(-1))
    bad("count_vast", "reject", "more storages than the member has",
        storages=dump(2**62) + b"".join(storages))
    bad("tensors_vast", "reject", "more tensors than the member has",
        tensors=dump(2**62) + b"".join(records))
    bad("tensors_empty", "reject", "a member without a byte", tensors=b"")
    bad("tensors_more", "warn", "bytes after the last tensor", tensors=good["tensors"] + b"more")
    bad("storages_more", "warn", "bytes after the last storage",
        storages=good["storages"] + b"more")
    stored("storage_key", "reject", "a storage whose key is a text",
           storage("x", "Float", FLOATS[:24]))
    stored("storage_key_none", "reject", "a storage without a key",
           storage(None, "Float", FLOATS[:24]))
    stored("storage_class", "reject", "a storage of no class of PyTorch's",
           storage(101, "Word", FLOATS[:24]))
    stored("storage_quint", "refuse", "a storage of numbers of four bits",
           storage(101, "QUInt4x2", FLOATS[:24]))
    stored("storage_count", "reject", "more elements than the member has",
           storage(101, "Float", FLOATS[:24], 2**40))
    stored("storage_count_vast", "reject", "a number of elements that exceeds 64 bits",
           storage(101, "Float", FLOATS[:24], 2**62))
    stored("storage_count_negative", "reject", "a negative number of elements",
           storage(101, "Float", FLOATS[:24], -1))
    stored("storage_count_cut", "reject", "a truncated count", views=None,
           rest=[storages[0], dump((102, "cpu", Name("DoubleStorage"))), b"\1\2"])
    stored("storage_twice", "reject", "two storages of one number", storages[0], storages[0])
    stored("storage_missing", "reject", "a tensor whose storage is missing")
    stored("views_dict", "reject", "views that are not a list", storages[0], views=dump({1: 2}))
    stored("view_short", "reject", "a view of three numbers", storages[0], views=[(7, 101, 0)])
    stored("view_root_word", "reject", "a view of a storage without a number", storages[0],
           views=[(7, "root", 0, 6)])
    stored("view_first_word", "reject", "a view whose begin is a text", storages[0],
           views=[(7, 101, "first", 6)])
    stored("view_bytes", "reject", "a view of 2^64 bytes", storages[0], views=[(7, 101, 0, 2**62)])
    stored("view_word", "reject", "a view that is a text", storages[0], views=["view"])
    stored("view_root", "reject", "a view of a missing storage", storages[0],
           views=[(7, 99, 0, 1)])
    stored("view_of_view", "reject", "a view of a view", storages[0], views=[(7, 101, 0, 6),
                                                                             (8, 7, 0, 1)])
    stored("view_past", "reject", "a view past its storage", storages[0], views=[(7, 101, 3, 4)])
    stored("view_vast", "reject", "a view that overflows", storages[0], views=[(7, 101, 2**62, 4)])
    stored("view_key", "reject", "a view with the number of a storage", storages[0],
           views=[(102, 101, 0, 4)])
    listed("tensor_key", "reject", "a tensor without a number", record("x", 101, [2, 3]))
    listed("tensor_storage", "reject", "a tensor whose storage is a float",
           record(201, 0.5, [2, 3]))
    listed("tensor_unknown", "reject", "a tensor of a missing storage",
           record(201, 99, [2, 3]))
    listed("tensor_class", "refuse", "a tensor of no storage and no known class",
           record(201, None, [], kind="Word"))
    listed("tensor_quint", "refuse", "a tensor of no storage and of numbers of four bits",
           record(201, None, [], kind="QUInt4x2"))
    listed("tensor_bare", "reject", "six elements without a storage", record(201, None, [2, 3]))
    listed("tensor_twice", "reject", "two tensors of one number", records[0], records[0])
    listed("tensor_rank", "reject", "dimensions past the end", record(201, 101, [2, 3],
                                                                      rank=1 << 20))
    listed("tensor_rank_negative", "reject", "a negative number of dimensions",
           record(201, 101, [2, 3], rank=-1))
    listed("tensor_size_negative", "reject", "a size below zero", record(201, 101, [-2, 3]))
    listed("tensor_stride_negative", "reject", "a stride below zero",
           record(201, 101, [2, 3], [-3, 1]))
    listed("tensor_offset_negative", "reject", "an offset below zero",
           record(201, 101, [2, 3], offset=-1))
    listed("tensor_past", "reject", "elements past the end of the storage",
           record(201, 101, [2, 3], offset=1))
    listed("tensor_stride_past", "reject", "strides past the end of the storage",
           record(201, 101, [2, 3], [4, 1]))
    listed("tensor_vast", "reject", "a shape that exceeds 64 bits",
           record(201, 101, [2**62, 2**62], [0, 0]))
    listed("tensor_expanded", "refuse", "2^44 times the same number",
           record(201, 101, [2**40, 16], [0, 0]))
    listed("tensor_gone", "reject", "a tensor of the pickle that has no record")
    bad("storage_alone", "warn", "a storage as a value",
        pickle=dump({"weight": Tensor(201), "memory": Tensor(102)}))
    bad("id_word", "reject", "a tensor whose number is a word",
        pickle=dump({"weight": Tensor("word")}))
    bad("id_long", "reject", "a tensor whose number is too long",
        pickle=dump({"weight": Tensor("9" * 30)}))
    call = b"\x80\x02cposix\nsystem\nX\x04\0\0\0true\x85R."
    bad("call_system", "reject", "a call of os.system", pickle=call)
    bad("info_call", "accept", "a call of os.system in the system information", sys_info=call)
    bad("count_call", "reject", "a call of os.system for a count",
        storages=call + b"".join(storages))
    sparse = b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\n(" + \
        b"ctorch.serialization\n_get_layout\nX\x10\0\0\0torch.sparse_coo\x85R(" + \
        b"X\x03\0\0\x00201Q" * 2 + b"(K\x02K\x03tttR."
    bad("sparse", "reject", "a sparse tensor, which this format never had", pickle=sparse)


def main():
    s = Samples(sys.argv[1], "torch")
    for write in (good_plain, good_types, good_views, good_many_views, good_empty, good_first,
                  good_modules, good_large, bad_headers, bad_parts):
        write(s)


main()
