"""hostile_pickles.py - pickles that call os.mkdir("executed"), spelled in every way, and the
containers in which loaders find them. Nothing is loaded here."""
import bz2
import gzip
import io
import lzma
import pickle
import random
import struct
import tarfile
import zipfile
import zlib

MARKER = b"executed"


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s


def short(s):
    return b"\x8c" + bytes([len(s)]) + s


ARGUMENTS = text(MARKER) + b"\x85"
CALL = ARGUMENTS + b"R"
PLAIN = b"\x80\x04cposix\nmkdir\n" + CALL + b"."


def spellings():
    """Yield (title, pickle)."""
    yield "GLOBAL", b"cposix\nmkdir\n" + CALL + b"."
    yield "GLOBAL, protocol 2", PLAIN
    yield "another name of the module", b"cos\nmkdir\n" + CALL + b"."
    dotted = short(b"os") + short(b"path.os.mkdir")
    yield "a dotted name", b"\x80\x04" + dotted + b"\x93" + CALL + b"."
    yield ("a long dotted name",
           b"\x80\x04cos\n" + b"path.os." * 60 + b"mkdir\n" + CALL + b".")
    yield "INST", b"(S'executed'\niposix\nmkdir\n."
    yield "INST at the end, without a newline", b"(S'executed'\niposix\nmkdir\x00"
    yield "OBJ", b"(cposix\nmkdir\n" + text(MARKER) + b"o."
    yield "STACK_GLOBAL", b"\x80\x04" + short(b"posix") + short(b"mkdir") + b"\x93" + CALL + b"."
    yield ("STACK_GLOBAL, escapes of UNICODE",
           b"\x80\x04V\\u0070osix\nV\\U0000006d\\u006bdir\n\x93" + CALL + b".")
    yield ("STACK_GLOBAL, escapes of STRING",
           b"\x80\x04S'\\x70os\\151x'\nS\"\\155kdir\"\n\x93" + CALL + b".")
    for put, get, title in ((b"q\x07", b"h\x07", "BINPUT"), (b"p7\n", b"g7\n", "PUT"),
                            (b"p 0_7 \n", b"h\x07", "PUT with an odd number"),
                            (b"r\xff\xff\x0f\0", b"j\xff\xff\x0f\0", "LONG_BINPUT"),
                            (b"p99999999999\n", b"g99999999999\n", "PUT past 32 bits")):
        yield (f"names of the memo, {title}", b"\x80\x04" + short(b"mkdir") + put + b"0" +
               short(b"posix") + get + b"\x93" + CALL + b".")
    yield ("names of the memo, MEMOIZE after other numbers",
           b"\x80\x04" + short(b"x") + b"r\x00\x00\x01\x000" + short(b"mkdir") + b"\x940" +
           short(b"posix") + b"h\x01\x93" + CALL + b".")
    yield ("names of the memo, overwritten",
           b"\x80\x04" + short(b"x") + b"q\x010" + short(b"mkdir") + b"q\x010" + short(b"posix") +
           b"h\x01\x93" + CALL + b".")
    yield ("a name of a codec", b"\x80\x04c_codecs\nencode\n" + text(b"cbfvk") + text(b"rot13") +
           b"\x86R" + short(b"mkdir") + b"\x93" + CALL + b".")
    yield ("getattr", b"\x80\x04cbuiltins\ngetattr\ncos\npath\n" + short(b"os") + b"\x86R0" +
           PLAIN[2:])
    yield ("a state that is a method",
           b"\x80\x02ccollections\nOrderedDict\n)R}X\x0c\0\0\0__setstate__cposix\nmkdir\nsb" +
           text(MARKER) + b"b.")
    yield ("defaultdict", b"\x80\x02cposix\nmkdir\n" + CALL + b"ccollections\ndefaultdict\n.")
    yield ("NEWOBJ_EX of a partial",
           b"\x80\x04cfunctools\npartial\ncposix\nmkdir\n" + ARGUMENTS[:-1] +
           b"\x86}\x92)R.")
    yield ("a frame that is too long",
           b"\x80\x04\x95\xff\xff\0\0\0\0\0\0cposix\nmkdir\n" + CALL + b".")
    yield "numbers before", b"I7\n0L8L\n0F1.5\n0I01\n0J\1\2\3\x040" + PLAIN[2:]
    yield "numbers in other bases", b"I0x1f\n0I 5 \n0Finf\n0F.5\n0" + PLAIN[2:]
    yield ("numbers that end with NUL", b"I\0x\n0" + text(b"mkdir") + b"p7\0x\n0" +
           text(b"posix") + b"g7\0y\n\x93" + CALL + b".")
    yield ("names of the memo, PUT of minus zero", text(b"mkdir") + b"p-0\n0" + text(b"posix") +
           b"g-0\n\x93" + CALL + b".")
    yield ("names of the memo, after many odd numbers",
           b"".join(b"Np%d\n0" % i for i in range(9000, 9040)) + text(b"mkdir") + b"p9999\n0" +
           text(b"posix") + b"g9999\n\x93" + CALL + b".")
    yield ("a name through a function that returns it", returned(text(b"posix")) +
           text(b"mkdir") + b"\x93" + CALL + b".")
    yield "getattr through a function that returns it", attributes() + CALL + b"."
    yield ("rebuilt by a function of PyTorch",
           b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cposix\nmkdir\ncbuiltins\nint\n" +
           ARGUMENTS + b"NtR.")


def returned(value):
    return b"ctorch.jit._pickle\nrestore_type_tag\n(" + value + b"NtR"


def attributes():
    """Return opcodes that push os.mkdir, found from the variables of an allowed function."""
    def attribute(owner, name):
        return returned(b"cbuiltins\ngetattr\n") + owner + text(name) + b"\x86R"

    def item(owner, key):
        return attribute(owner, b"get") + text(key) + b"\x85R"

    variables = attribute(b"ctorch._utils\n_rebuild_tensor\n", b"__globals__")
    modules = attribute(item(variables, b"sys"), b"modules")
    return attribute(item(modules, b"posix"), b"mkdir")


def endings():
    """Yield (title, function that ends a pickle in another way)."""
    yield "whole", lambda p: p
    yield "an invalid opcode", lambda p: p[:-1] + b"\xff"
    yield "cut", lambda p: p[:-1]
    yield "text after", lambda p: p + b"\nThis is a text.\n"


# ---- containers -----------------------------------------------------------------------------


def zipped(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, method)
    return out.getvalue()


def torch_like(data, name="archive/data.pkl", **more):
    return {name: data, "archive/version": b"3\n", "archive/byteorder": b"little", **more}


def tarred(*members, form=tarfile.GNU_FORMAT, **more):
    """members: (name, data, fields of TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **more) as archive:
        for name, data, fields in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in fields.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def with_sum(header, total=None):
    """Return a header of tar with its checksum mended."""
    header = header[:148] + b" " * 8 + header[156:]
    checksum = sum(header) if total is None else total(header)
    return header[:148] + b"%06o\0 " % checksum + header[156:]


def signed_sum(header):
    return sum(b - 256 if b > 127 else b for b in header)


def with_number(archive):
    """Write the checksum of signed bytes as GNU's base 256."""
    header = archive[:148] + b" " * 8 + archive[156:512]
    return (header[:148] + (signed_sum(header) % (1 << 64)).to_bytes(8, "big") + header[156:] +
            archive[512:])


def changed(archive, at, data, total=None):
    """Change a field of the first header."""
    header = archive[:at] + data + archive[at + len(data):512]
    return with_sum(header, total) + archive[512:]


def npy(descr, data, version=1, shape="(1,)"):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def legacy(number, payload=None):
    """Return a legacy file of PyTorch in which a pickle is the payload."""
    pickles = [pickle.dumps(0x1950A86A20F9469CFC6C, 2), pickle.dumps(1001, 2),
               pickle.dumps({"protocol_version": 1001, "little_endian": True,
                             "type_sizes": {"short": 2, "int": 4, "long": 4}}, 2),
               pickle.dumps({}, 2), pickle.dumps([], 2)]
    pickles[number] = payload or PLAIN[:-1] + b"0" + pickles[number][2:]
    return b"".join(pickles)


def skippable(data):
    return b"\x52\x2A\x4D\x18" + struct.pack("<I", len(data)) + data


def raw_zstd(data):
    """Return a frame of zstd whose blocks are not compressed; a single segment."""
    block = struct.pack("<I", 1 | len(data) << 3)[:3] + data
    return b"\x28\xB5\x2F\xFD\xA0" + struct.pack("<I", len(data)) + block


def containers(data):
    """Yield (title, file name, bytes)."""
    yield "no suffix", "m", data
    for suffix in ("pkl", "PKL", "sav", "dat", "Pt", "bin", "txt", "jpg"):
        yield f".{suffix}", f"m.{suffix}", data
    yield from archives(data)
    yield from arrays(data)
    yield from packed(data)


def archives(data):
    yield "PyTorch", "m.pt", zipped(torch_like(data))
    yield "PyTorch, capital letters", "m.pt", zipped(torch_like(data, "archive/DATA.PKL"))
    yield "PyTorch, mixed letters", "m.bin", zipped(torch_like(data, "Archive/Data.Pkl"))
    yield ("PyTorch, claims to be TorchScript", "m.pt",
           zipped(torch_like(data, **{"archive/constants.PKL": b"\x80\2)."})))
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"zip, method {method}", "m.zip", zipped({"weights": data}, method)
    yield "bytes before a zip", "m.zip", b"x" * 100 + zipped({"weights": data})
    yield "a zip in a zip", "m", zipped({"a": b"bytes before" + zipped({"b": data})})
    yield "two zips", "m", zipped({"a": data}) + zipped({"b": b"nothing"})
    member = ("weights", data, {})
    for form, title in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.GNU_FORMAT, "GNU"),
                        (tarfile.PAX_FORMAT, "pax")):
        yield f"tar, {title}", "m.tar", tarred(member, form=form)
    plain = tarred(member, form=tarfile.USTAR_FORMAT)
    yield "tar without a magic", "m.tar", changed(plain, 257, bytes(8))
    yield "tar with another magic", "m", changed(plain, 257, b"abcdefgh")
    yield "tar, signed sum", "m.tar", changed(plain, 0, b"w\xffights", signed_sum)
    low = changed(changed(plain, 0, b"\xff" * 100, signed_sum), 265, b"\xff" * 64)
    low = changed(changed(low, 157, b"\xff" * 100), 124, b"\x80" + len(data).to_bytes(11, "big"))
    low = changed(changed(changed(low, 345, b"\xff" * 155), 257, bytes(8)), 100, bytes(24))
    yield "tar, negative sum", "m.tar", changed(low, 136, bytes(12), signed_sum)
    yield ("tar, negative sum in base 256", "m.tar",
           with_number(changed(low, 136, bytes(12), signed_sum)))
    yield "tar, size with separators", "m.tar", changed(plain, 124,
                                                        b"\x1c%o\x1f" % len(data) + bytes(4))
    yield "tar, size with blanks", "m.tar", changed(plain, 124, b" %o " % len(data) + bytes(4))
    yield "tar, size in base 256", "m.tar", changed(plain, 124,
                                                    b"\x80" + len(data).to_bytes(11, "big"))
    for kind in (b"7", b"\0", b"A", b"D", b"M", b"V", b"Z", b"9"):
        yield f"tar, type {kind}", "m.tar", changed(plain, 156, kind)
    yield ("tar, sparse", "m.tar",
           changed(changed(changed(plain, 156, b"S"), 386, b"0\0" + bytes(10) +
                           b"%011o\0" % len(data)), 483, b"%011o\0" % len(data)))
    yield "tar, after zeros", "m.tar", bytes(1024) + plain
    yield ("tar, after an end", "m.tar",
           tarred(("a", b"nothing", {}), form=tarfile.USTAR_FORMAT)[:1024] + bytes(1024) + plain)
    yield ("tar, path for all members", "m.tar",
           tarred(member, form=tarfile.PAX_FORMAT, pax_headers={"path": "other"}))
    yield ("tar, path of pax", "m.tar",
           tarred(("w" * 200, data, {"pax_headers": {"path": "weights.pkl"}}),
                  form=tarfile.PAX_FORMAT))
    yield ("tar, size of pax", "m.tar",
           tarred(("weights", data, {"pax_headers": {"size": str(len(data))}}),
                  form=tarfile.PAX_FORMAT))
    yield ("tar, link to the payload", "m.tar",
           tarred(member, ("link", b"", {"type": tarfile.LNKTYPE, "linkname": "weights"})))
    yield ("tar, payload after a folder with a size", "m.tar",
           changed(tarred(("folder/", b"", {"type": tarfile.DIRTYPE}), member,
                          form=tarfile.USTAR_FORMAT), 124, b"%011o\0" % 100000))
    named = changed(plain, 0, b"cposix\nmkdir\n(S'executed'\ntR.")
    yield "tar whose name is a pickle", "m.tar", named
    yield "tar in a tar", "m.tar", tarred(("inner.tar", plain, {}))
    yield "tar.gz", "m.tar.gz", gzip.compress(plain)
    yield "tar.xz", "m", lzma.compress(plain)


def arrays(data):
    for descr in ("'O'", "'|O'", "'O8'", "'|O8'", "'<O8'", "'\\x7cO'", "'\\x4f'", "'\\117'",
                  "'\\N{LATIN CAPITAL LETTER O}'", "'|' 'O'", "u'O'", "'object'", "'object_'",
                  "[('a', 'O')]", "[('a', '<f4'), ('b', '|O')]", "[('a', '|O', (2,))]",
                  "('O', (2,))", "[('a', [('b', '\\x4f')])]"):
        yield f"npy {descr}", "m.npy", npy(descr, data)
    for version in (2, 3):
        yield f"npy, version {version}", "m.npy", npy("'|O'", data, version)
    yield "npy, no promise", "m.dat", npy("'O8'", data)
    first = npy("'<u2'", bytes(14), shape="(7,)")
    yield "npy after another", "m.npy", first + npy("'O8'", data)
    yield "a pickle after an npy", "m.npy", first + data
    yield "npy after a structured one", "m.npy", \
        npy("[('a', '<u2')]", bytes(14), shape="(7,)") + npy("'O8'", data)
    yield "a pickle after a structured npy", "m.npy", \
        npy("[('a', '<u2', (2,)), ('b', 'S3')]", bytes(14), shape="(2,)") + data
    for title, descr in (("an escape", "'<\\x752'"), ("no digits", "'H'"),
                         ("a comment", "'<u2', #O8\n")):
        yield f"a pickle after an npy with {title}", "m.npy", \
            npy(descr, bytes(14), shape="(7,)") + data
    large = npy("'|i1'", random.Random(7).randbytes(2 << 20), shape="(2097152,)")
    yield "gzip, npy after a large one", "m", gzip.compress(large + npy("'O8'", data), 1)
    yield "gzip, a pickle after a large npy", "m", gzip.compress(large + data, 1)
    yield ("npz, deflated, npy after a large one", "m.npz",
           zipped({"a.npy": large + npy("'O8'", data)}, zipfile.ZIP_DEFLATED))
    yield "npz", "m.npz", zipped({"a.npy": npy("'O8'", data)})
    yield "npz, deflated", "m.npz", zipped({"a": npy("'\\x4f'", data)}, zipfile.ZIP_DEFLATED)
    far = b"\x80\x04C\xff" + bytes(255) + b"0B" + struct.pack("<I", 3 << 20) + \
        random.Random(3).randbytes(3 << 20) + b"0" + data[2:]
    yield ("npz, deflated, the payload past 1 MiB", "m.npz",
           zipped({"a.npy": npy("'\\x4f'", far)}, zipfile.ZIP_DEFLATED))
    yield "gzip, the payload past 1 MiB", "m", gzip.compress(far, 1)


def packed(data):
    half = len(data) // 2
    first, second = gzip.compress(data[:half]), gzip.compress(data[half:])
    yield "gzip", "m.gz", gzip.compress(data)
    yield "gzip in two members", "m", first + second
    yield "gzip with padding between members", "m", first + bytes(700) + second
    yield "gzip, an empty member first", "m", gzip.compress(b"") + bytes(5) + first + second
    odd = first[:3] + b"\x1f" + first[4:10] + b"\2\0xyname\0c\0hh"
    yield "gzip with an odd header", "m", odd + \
        first[10:] + second
    yield "gzip with a wrong sum", "m", gzip.compress(data)[:-8] + bytes(8)
    yield "gzip, cut", "m", gzip.compress(data + bytes(100000))[:-12]
    yield "gzip, damaged after the payload", "m", \
        gzip.compress(data + random.Random(1).randbytes(20000))[:-6000] + b"\xff" * 6000
    yield "bzip2", "m", bz2.compress(data)
    yield "bzip2 in two streams", "m", bz2.compress(data[:half]) + bz2.compress(data[half:])
    yield "bzip2, an empty stream first", "m", bz2.compress(b"") + bz2.compress(data)
    yield "xz", "m", lzma.compress(data)
    yield "xz with padding", "m", lzma.compress(data[:half]) + bytes(8) + lzma.compress(data[half:])
    for lc, lp, pb, size in ((3, 0, 2, 23), (0, 4, 4, 12), (4, 0, 0, 20), (1, 3, 3, 16),
                             (0, 2, 1, 20)):
        filters = [{"id": lzma.FILTER_LZMA1, "preset": 6, "lc": lc, "lp": lp, "pb": pb,
                    "dict_size": 1 << size}]
        alone = lzma.compress(data, lzma.FORMAT_ALONE, filters=filters)
        yield f"lzma {lc} {lp} {pb}", "m", alone
        yield (f"lzma {lc} {lp} {pb}, the size stated", "m",
               alone[:5] + struct.pack("<Q", len(data)) + alone[13:])
    long = data + random.Random(11).randbytes(30000)
    alone = lzma.compress(long, lzma.FORMAT_ALONE)
    for exponent in (38, 63):
        for size in (1 << 23, 0, 0x123400):
            yield f"lzma, a dictionary of {size}, 2^{exponent} bytes stated", "m", \
                alone[:1] + struct.pack("<IQ", size, 1 << exponent) + alone[13:]
    for level in (0, 1, 6, 9):
        yield f"zlib {level}", "m", zlib.compress(data, level)
    for bits in (9, 12, 15):
        o = zlib.compressobj(9, zlib.DEFLATED, bits)
        yield f"zlib, window {bits}", "m", o.compress(data) + o.flush()
    yield "zlib in two streams", "m.joblib", zlib.compress(data[:half]) + zlib.compress(data[half:])
    for blanks in (17, 18):
        yield f"ZF of joblib, {blanks} blanks", "m", \
            b"ZF" + (b"%#x" % len(data)).ljust(19) + b" " * (blanks - 17) + zlib.compress(data)
    yield "zlib, cut", "m", zlib.compress(data, 0)[:-4]
    yield "zstd", "m.zst", raw_zstd(data)
    yield "zstd after a skipped frame", "m.zst", skippable(b"text") + raw_zstd(data)
    yield "lz4", "m.lz4", lz4(data)


def lz4(data):
    """Return a frame of LZ4 with one block that is not compressed; no checksums."""
    head = b"\x04\x22\x4D\x18" + b"\x60\x40\x82"
    return head + struct.pack("<I", len(data) | 1 << 31) + data + bytes(4)


def joblib_file(rest, raw, framed=False, padding=b"\2\xff\xff", after=b""):
    """Return what joblib writes of an array: its wrapper, the bytes of the array, more opcodes,
    which are a part of the frame, or follow the array."""
    wrapper = (b"cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(X\x08\0\0\0subclass"
               b"cnumpy\nndarray\n"
               b"X\x05\0\0\0shapeK" + bytes([len(raw)]) + b"\x85X\x05\0\0\0orderX\x01\0\0\0C"
               b"X\x05\0\0\0dtypecnumpy\ndtype\nX\x02\0\0\0u1\x89\x88\x87R(K\x03X\x01\0\0\0|NNN"
               b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
               b"X\x0a\0\0\0allow_mmap\x88X\x1b\0\0\0numpy_array_alignment_bytes" +
               (b"K\x10" if padding else b"N") + b"ub")
    data = padding + raw
    if not framed:
        return b"\x80\x03" + wrapper + data + rest
    frame = wrapper + rest
    return b"\x80\x04\x95" + struct.pack("<Q", len(frame)) + frame + data + after


def of_joblib():
    """Yield (title, file name, bytes) of files that only joblib, or only pickle, runs."""
    payload = b"0cposix\nmkdir\n" + CALL + b"."
    yield "joblib, the payload after an array", "m", joblib_file(payload, bytes(5))
    yield "joblib, the payload in the frame", "m", joblib_file(payload, b"....", True)
    for frame, after in ((b"0", payload[1:]), (b"0c", payload[2:]), (b"0cposix\n", payload[8:]),
                         (b"0X", text(b"posix")[1:] + text(b"mkdir") + b"\x93" + CALL + b"."),
                         (b"0\x95" + struct.pack("<Q", len(payload) - 1), payload[1:])):
        yield (f"joblib, the frame ends with {frame[:3]}, the payload after the array", "m",
               joblib_file(frame, bytes(5), True, after=after))
    array = payload
    yield "joblib, an array that is a payload", "m", joblib_file(b"0N.", array, padding=b"")
    objects = joblib_file(b"", b"", padding=b"").replace(b"u1", b"O8")
    objects = objects.replace(b"\xff\xff\xff\xffK\0", b"\xff\xff\xff\xffK?")
    yield "joblib, an array of objects", "m", objects + PLAIN + b"0N."


def storage_id(kind, key, elements, view=b"N"):
    return (b"(" + text(b"storage") + b"ctorch\n" + kind + b"Storage\n" + text(key) +
            text(b"cpu") + b"K" + bytes([elements]) + view + b"tQ")


def legacy_with(ids, keys, *storages):
    """Return a legacy file with persistent ids, and storages: (elements, bytes)."""
    data = b"\x80\x02(" + b"".join(ids) + b"l."
    start = legacy(3, data)
    return start[:-len(pickle.dumps([], 2))] + pickle.dumps(keys, 2) + b"".join(
        struct.pack("<Q", n) + raw for n, raw in storages)


def storages():
    """Yield (title, bytes) of legacy files after which another file may follow."""
    junk = random.Random(5).randbytes(2 << 20)
    yield "one storage", legacy_with([storage_id(b"Float", b"0", 2)], ["0"], (2, b"\xff" * 8))
    ids = [storage_id(b"Float", b"0", 2), storage_id(b"Long", b"1", 3),
           storage_id(b"Half", b"2", 2), storage_id(b"Float", b"0", 2)]
    contents = (2, b"\xff" * 4), (2, b"\xff" * 8), (3, b"\xff" * 24)
    yield "types", legacy_with(ids, ["2", "0", "1"], *contents)
    for protocol in range(5):
        keys = pickle.dumps(["2", "0", "1"], protocol)
        whole = legacy_with(ids, [], *contents)
        at = whole.index(pickle.dumps([], 2) + b"\2\0\0\0")
        yield f"keys of protocol {protocol}", whole[:at] + keys + whole[at + len(
            pickle.dumps([], 2)):]
        if protocol == 2:
            yield "keys that are a tuple", whole[:at] + pickle.dumps(("2", "0", "1"), 2) + whole[
                at + len(pickle.dumps([], 2)):]
    view = b"(" + text(b"9") + b"K\0K\1t"
    yield "a view", legacy_with([storage_id(b"Float", b"0", 2, view)], ["9"], (1, b"\xff" * 4))
    built = storage_id(b"Float", b"0", 2) + b"}" + text(b"dtype") + b"ctorch\nfloat64\nsb"
    yield "a type that changes", legacy_with([built], ["0"], (1, b"\xff" * 8))
    large = storage_id(b"Byte", b"0", 0).replace(b"K\0N", b"J" + struct.pack("<I", len(junk)) +
                                                 b"N")
    yield "2 MiB", legacy_with([large], ["0"], (len(junk), junk))


def scripts():
    """Yield (title, file name, bytes) of TorchScript whose code writes a file."""
    calls = {"a name": "torch.save", "a line join": "torch. \\\n save",
             "a text": 'getattr(torch, "save")',
             "an escape": 'getattr(torch, "s\\141ve")', "two texts": "getattr(torch, 'sa'\n've')",
             "a comment": "torch # '\n. # \"\n save"}
    for title, call in calls.items():
        code = f"""class M(Module):
  __parameters__ = []
  __buffers__ = []
  x : int
  def __getstate__(self: __torch__.M) -> int:
    return 1
  def __setstate__(self: __torch__.M, s: int) -> NoneType:
    self.x = s
    _0 = ({call}(1, "executed"))
    return None
"""
        members = torch_like(b"\x80\2c__torch__\nM\n)\x81K\1b.", **{
            "archive/constants.pkl": b"\x80\2).", "archive/code/__torch__.py": code.encode()})
        yield f"TorchScript, {title}", "m.pt", zipped(members)


def early_tars():
    """Yield (title, bytes) of tar archives of early PyTorch: a pickle after a storage or tensor."""
    count = [pickle.dumps(n, 2) for n in range(3)]
    storage = (b"\x80\2K\1" + text(b"cpu") + b"ctorch\nFloatStorage\n\x87." +
               struct.pack("<Q", 2) + b"\xff" * 8)
    tensor = b"\x80\2K\1K\1ctorch\nFloatTensor\n\x87." + struct.pack("<iiqqq", 1, 0, 1, 1, 0)
    one = count[1] + storage + pickle.dumps([], 2)
    for title, storages_of, tensors in (("storage", count[2] + storage + PLAIN, count[0]),
                                        ("tensor", one, count[2] + tensor + PLAIN)):
        yield title, tarred(("sys_info", pickle.dumps({}, 2), {}), ("pickle", count[1], {}),
                            ("storages", storages_of, {}), ("tensors", tensors, {}))


def package():
    """Return an archive of torch.package with a module that a harmless pickle imports."""
    return zipped({"a/.data/extern_modules": b"os\n", "a/.data/version": b"6\n",
                   "a/version": b"6\n", "a/m/m.pkl": b"\x80\2ccollections\nOrderedDict\n)R.",
                   "a/collections.py": b"import os\nos.mkdir('executed')\nOrderedDict = dict\n"})


def sequences():
    """Yield (title, file name, bytes): the payload follows what a loader takes before."""
    for title, data in storages():
        for second, what in ((legacy(3), "a file"), (zipped(torch_like(PLAIN)), "a zip")):
            yield f"legacy PyTorch, {title}, then {what}", "m.pt", data + second
        yield f"legacy PyTorch, {title}, in gzip", "m", gzip.compress(data + legacy(3), 1)
    decoy = npy("'|i1'", b"", shape="(9999,)")
    array = npy("'O8'", b"\x80\4" + b"C" + bytes([len(decoy)]) + decoy + b".")
    yield "npy after an array of objects with a decoy", "m", array + npy("'O8'", PLAIN)
    yield "npy after a pickle", "m", b"\x80\4N." + npy("'O8'", PLAIN)
    junk = random.Random(9).randbytes(2 << 20)
    large = npy("'|i1'", junk, shape=f"({len(junk)},)")
    yield "npy after a pickle, in gzip", "m", gzip.compress(
        b"\x80\4N." + large + npy("'O8'", PLAIN), 1)
    yield "after a frame that goes on, in gzip", "m", gzip.compress(
        b"\x80\x04\x95" + struct.pack("<Q", len(junk) + 2) + b"N." + junk + PLAIN, 1)
    for byte in (b"\xff", b"\0"):
        frame = b"N." + byte * 200000
        yield ("after a frame that goes on", "m",
               b"\x80\x04\x95" + struct.pack("<Q", len(frame)) + frame + PLAIN)


def hostile():
    """Yield (title, file name, bytes)."""
    for title, data in spellings():
        for ending, change in endings():
            yield f"{title}; {ending}", "m", change(data)
    broken = PLAIN[:-1] + b"\xff"
    for title, name, data in containers(PLAIN):
        yield title, name, data
    for title, name, data in containers(broken):
        yield f"{title}; damaged after the call", name, data
    for number in range(5):
        yield f"legacy PyTorch, pickle {number + 1}", "m.pt", legacy(number)
        yield f"legacy PyTorch, pickle {number + 1}, no suffix", "m", legacy(number)
    module = b"(S'module'\nS'posix'\nNNtQS'mkdir'\n\x93" + CALL
    for ending in (b".", b"\xff"):
        yield f"legacy PyTorch, id of a module, then {ending}", "m", legacy(3, module + ending)
    yield from of_joblib()
    yield from sequences()
    yield from scripts()
    yield "torch.package", "m.pt", package()
    for title, data in early_tars():
        yield f"tar of PyTorch, after a {title}", "m.pt", data


def mutated(count):
    """Yield files with random changes; most are not run by any loader."""
    source = random.Random(46)
    rows = [row for row in hostile() if len(row[2]) < 1 << 15]
    for i in range(count):
        title, name, data = source.choice(rows)
        data = bytearray(data)
        for _ in range(source.choice((1, 1, 2, 4))):
            at = source.randrange(len(data))
            kind = source.randrange(4)
            if kind == 0:
                data[at] = source.randrange(256)
            elif kind == 1:
                data[at] ^= 1 << source.randrange(8)
            elif kind == 2 and len(data) > 40:
                del data[at:at + source.choice((1, 2, 16))]
            else:
                data[at:at] = source.randbytes(source.choice((1, 2, 16)))
        yield f"changed {i}: {title}", name, bytes(data)
