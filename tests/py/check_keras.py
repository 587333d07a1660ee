#!/usr/bin/env python3
"""check_keras.py HEFT: compare Heft with h5py, which Keras writes and reads its weights with.

Debian's python3-h5py makes files in the layouts of Keras 2 and 3, and files that are hostile or
damaged; Heft must list the arrays that h5py reads, or refuse the file. TAP on stdout."""
import base64
import ctypes
import hashlib
import io
import json
import marshal
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

try:
    import h5py
    import numpy
except ImportError as e:
    print(f"1..0 # SKIP {e.name} is not installed")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/remote")]
import loopback  # noqa: E402
import tap  # noqa: E402

DTYPES = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2",
          "i8": "i1", "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "u1", "bool": "?",
          "c64": "<c8", "c128": "<c16"}
NAMES = {numpy.dtype(v): k for k, v in DTYPES.items()}
UNSUPPORTED, FAULTY, FAULTS = 5, 3, 1  # FAULTS: of verify


def heft(*args, **more):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False, **more)


# ---- the two lists ----------------------------------------------------------------------------

def facts(array):
    array = numpy.asarray(array)
    little = array.astype(array.dtype.newbyteorder("<"))
    return NAMES[little.dtype], list(array.shape), hashlib.sha256(little.tobytes()).hexdigest()


def by_h5py(file):
    """Return path -> facts of every array that h5py finds once by hard links."""
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiubc":
            found[name] = facts(item[()])
    file.visititems(visit)
    return found


def by_heft(path):
    """Return the facts that heft lists, or its error. A process for each array took minutes: one
    writes all of them to a file that NumPy reads, and `cat` writes the last one."""
    p = heft("ls", "--json", path)
    if p.returncode:
        return p.stderr.decode()
    tensors = json.loads(p.stdout)["tensors"]
    with tempfile.NamedTemporaryFile(suffix=".npz") as out:
        q = heft("convert", "--force", "--no-sync", path, out.name)
        if q.returncode and tensors:
            return q.stderr.decode()
        arrays = dict(numpy.load(out.name)) if tensors else {}
    found = {t["name"]: arrays[t["name"]].tobytes() for t in tensors}
    for last in tensors[-1:]:
        found[last["name"]] = heft("cat", path, last["name"]).stdout
    return {t["name"]: (t["dtype"], t["shape"], hashlib.sha256(found[t["name"]]).hexdigest())
            for t in tensors}


def differences(want, path):
    got = by_heft(path)
    if isinstance(got, str):
        yield got
        return
    for name in sorted(set(want) | set(got)):
        if want.get(name) != got.get(name):
            yield f"{name}: heft has {got.get(name)}, h5py {want.get(name)}"
    verdict = heft("verify", path)
    if verdict.returncode:
        yield verdict.stdout.decode() + verdict.stderr.decode()


def refused(path, code, text):
    for command in ("ls", "verify"):
        p = heft(command, path)
        said = (p.stdout + p.stderr).decode()
        if p.returncode != code or text not in said:
            yield f"{command}: exit {p.returncode}: {said}"


def random_array(rng, dtype, shape):
    raw = rng.integers(0, 2 if dtype == "?" else 256, (*shape, numpy.dtype(dtype).itemsize),
                       numpy.uint8)
    return raw.view(dtype).reshape(shape)


# ---- files of Keras ---------------------------------------------------------------------------

def fill_keras3(file):
    """Layers of Keras 3: variables by number, the name of the layer as an attribute."""
    rng = numpy.random.default_rng(3)
    for path, name, shapes in (("layers/dense", "first", [(7, 5), (5,)]),
                               ("layers/dense_1", "second", [(5, 2), (2,)]),
                               ("optimizer", "adam", [(), (7, 5)])):
        group = file.create_group(path).create_group("vars")
        group.attrs["name"] = name
        for i, shape in enumerate(shapes):
            group[str(i)] = rng.normal(size=shape).astype("f4")


def fill_keras2(file):
    """The legacy format: names of layers and of weights in attributes, also cut in pieces."""
    file.attrs["model_config"] = json.dumps({"class_name": "Functional", "config": {"layers": []}})
    file.attrs["keras_version"], file.attrs["backend"] = "2.15.0", b"tensorflow"
    top = file.create_group("model_weights")
    layers = {"conv": ["conv/kernel:0", "conv/bias:0"], "block/norm": ["block/norm/gamma:0"],
              "twin": ["conv/kernel:0"]}
    top.attrs["layer_names"] = [name.encode() for name in layers]
    want = {}
    for number, (layer, names) in enumerate(layers.items()):
        group = top.create_group(layer)
        for i, name in enumerate(names):
            group.attrs[f"weight_names{i}" if number else "weight_names"] = [
                n.encode() for n in (names if not number else [name])]
            array = numpy.full((3, number + 1), i + number, "f4")
            group[name] = array
            shown = name if name not in want else f"model_weights/{layer}/{name}"
            want[shown] = facts(array)
    return want


def keras3(scratch):
    path = scratch / "a.weights.h5"
    with h5py.File(path, "w") as f:
        fill_keras3(f)
        want = by_h5py(f)
    yield from differences(want, path)
    info = heft("info", path).stdout.decode()
    if "layers/dense_1/vars@name = second" not in info:
        yield info


def keras2(scratch):
    path = scratch / "legacy.h5"
    with h5py.File(path, "w") as f:
        want = fill_keras2(f)
    yield from differences(want, path)
    info = heft("info", path).stdout.decode()
    for text in ("Keras 2.15.0", "keras.class_name = Functional", "backend = tensorflow",
                 "model_weights@layer_names = [3 values]"):
        if text not in info:
            yield f"no {text!r} in {info}"


def archive(path, method, fill, libver="earliest"):
    buf = io.BytesIO()
    with h5py.File(buf, "w", libver=libver) as f:
        fill(f)
        want = by_h5py(f)
    with zipfile.ZipFile(path, "w", method) as z:
        z.writestr("metadata.json", json.dumps({"keras_version": "3.4.1", "date_saved": "today"}))
        z.writestr("config.json", json.dumps({"class_name": "Sequential", "config": {}}))
        z.writestr("model.weights.h5", buf.getvalue())
        z.writestr("assets/words.txt", "the\na\n")
    return want


def archives(scratch):
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        for fill in (fill_keras3, fill_layouts):
            path = scratch / f"{method}.keras"
            yield from differences(archive(path, method, fill), path)
            info = heft("info", path).stdout.decode()
            for text in ("Keras 3.4.1", "keras.class_name = Sequential", "assets/words.txt"):
                if text not in info:
                    yield f"no {text!r} in {info}"


def damaged_archives(scratch):
    """A changed byte of the weights is found: by verify, or when deflated weights are opened."""
    for method, command in ((zipfile.ZIP_STORED, "verify"), (zipfile.ZIP_DEFLATED, "ls")):
        path = scratch / f"damaged{method}.keras"
        archive(path, method, fill_keras3)
        data = bytearray(path.read_bytes())
        with zipfile.ZipFile(path) as z:
            member = z.getinfo("model.weights.h5")
            first, last = member.header_offset + 50, member.header_offset + member.compress_size
        data[last if method == zipfile.ZIP_STORED else (first + last) // 2] ^= 1
        path.write_bytes(data)
        p = heft(command, path)
        if p.returncode != (FAULTS if command == "verify" else FAULTY):
            yield f"{command}: exit {p.returncode}: {(p.stdout + p.stderr).decode()}"


def bfloat16(scratch):
    path = scratch / "bf16.weights.h5"
    bits = numpy.array([0x3f80, 0xc000, 0x7f80, 0x0001], "<u2")
    with h5py.File(path, "w") as f:
        for name, array in (("v", bits.view("V2")), ("u", bits)):
            f.create_dataset(name, data=array).attrs["dtype"] = "bfloat16"
        f["other"] = bits.view("V2")
    listed = json.loads(heft("ls", "--json", path).stdout)["tensors"]
    got = {t["name"]: (t["dtype"], t["shape"], heft("cat", path, t["name"]).stdout) for t in listed}
    want = ("bf16", [4], bits.tobytes())
    if got != {"v": want, "u": want}:
        yield str(got)
    if "'other' holds bytes without a type" not in heft("ls", path).stderr.decode():
        yield "no warning about bytes without a type"


# ---- layouts of HDF5 --------------------------------------------------------------------------

def fill_layouts(file):
    """Every element type in every layout, and shapes that chunks do not divide."""
    rng = numpy.random.default_rng(5)
    for kind, dtype in DTYPES.items():
        for shape in ((), (0, 3), (11,), (9, 7), (5, 3, 4)):
            array = random_array(rng, dtype, shape)
            name = f"{kind}/{'x'.join(map(str, shape)) or 'scalar'}"
            file[name] = array
            if not array.size or not shape:
                continue
            chunks = tuple(max(1, n * 2 // 3) for n in shape)
            for i, filters in enumerate(({}, {"compression": "gzip"},
                                         {"compression": "gzip", "shuffle": True},
                                         {"fletcher32": True},
                                         {"shuffle": True, "compression": 9, "fletcher32": True})):
                file.create_dataset(f"{name}_{i}", data=array, chunks=chunks, **filters)
        big = numpy.dtype(dtype).newbyteorder(">")
        file[f"{kind}/big"] = random_array(rng, dtype, (4, 5)).astype(big)
        file.create_dataset(f"{kind}/big_gz", data=random_array(rng, dtype, (4, 5)).astype(big),
                            chunks=(3, 3), compression="gzip")
    file.create_dataset("unwritten", (4, 5), "<f4", fillvalue=2.5)
    file.create_dataset("unwritten_chunks", (40, 5), "<i2", chunks=(3, 2), fillvalue=-3)
    some = file.create_dataset("some_chunks", (40, 5), "<i2", chunks=(3, 2), fillvalue=-3)
    some[10:13, 1:4] = 8
    space, plan = h5py.h5s.create_simple((6,)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.COMPACT)
    d = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I16BE, space, plan)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.arange(6, dtype="<i2"))
    file.create_dataset("growing", data=numpy.arange(30.0).reshape(10, 3), maxshape=(None, None),
                        chunks=(4, 2))


def layouts(scratch):
    for libver in ("earliest", "latest"):
        path = scratch / f"{libver}.h5"
        with h5py.File(path, "w", libver=libver) as f:
            fill_layouts(f)
            want = by_h5py(f)
        yield from differences(want, path)


def user_block(scratch):
    for size in (512, 2048):
        path = scratch / f"user{size}.h5"
        with h5py.File(path, "w", userblock_size=size) as f:
            fill_keras3(f)
            f.create_dataset("gz", data=numpy.arange(99), chunks=(10,), compression="gzip")
            want = by_h5py(f)
        yield from differences(want, path)


def array_types(scratch):
    """Elements that are arrays have their dimensions at the end; enumerations are numbers."""
    path = scratch / "types.h5"
    values = numpy.arange(24, dtype="<f4").reshape(3, 2, 4)
    with h5py.File(path, "w") as f:
        kind = h5py.h5t.array_create(h5py.h5t.IEEE_F32LE, (2, 4))
        d = h5py.h5d.create(f.id, b"arrays", kind, h5py.h5s.create_simple((3,)))
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=kind)
        f.create_dataset("enum", data=numpy.array([2, 0], "i2"),
                         dtype=h5py.enum_dtype({"A": 0, "B": 2}, basetype="<i2"))
        f["empty"] = h5py.Empty("<f8")
        f["text"], f["texts"] = "a", [b"a", b"bc"]
        f["record"] = numpy.zeros(2, [("a", "i4"), ("b", "f4")])
    want = {"arrays": facts(values), "enum": facts(numpy.array([2, 0], "<i2")),
            "empty": facts(numpy.zeros(0, "<f8"))}
    yield from differences(want, path)
    said = heft("verify", path).stdout.decode()
    yield from (f"no {name} in {said}" for name in ("'text'", "'texts'", "'record'")
                if f"keras/unread: {name} holds" not in said)


def links(scratch):
    """A group is listed once, a dataset by each of its names; cycles end."""
    path = scratch / "links.h5"
    with h5py.File(path, "w") as f:
        f["a/x"] = numpy.arange(6.0)
        f.create_dataset("a/z", data=numpy.arange(60), chunks=(7,), compression="gzip")
        f["a/loop"], f["b"] = f["/"], f["a"]
        f["a/self"] = f["a"]
        f["y"], f["z"] = f["a/x"], f["a/z"]
        f["soft"], f["to_group"] = h5py.SoftLink("/a/x"), h5py.SoftLink("/a")
        f["nowhere"], f["round"] = h5py.SoftLink("/nothing"), h5py.SoftLink("/round")
        x, z = facts(f["a/x"][()]), facts(f["a/z"][()])
    yield from differences({"a/x": x, "y": x, "soft": x, "a/z": z, "z": z}, path)
    said = heft("verify", path).stdout.decode()
    for text in ("'nowhere' is a link that leads to nothing",
                 "'b' is another name of the group 'a'",
                 "'round' is a link that leads to nothing"):
        if text not in said:
            yield f"no {text!r} in {said}"


def converted(scratch):
    """A conversion has the values of the file; --to keras says what to do instead."""
    path, out = scratch / "all.h5", scratch / "all.npz"
    with h5py.File(path, "w") as f:
        fill_layouts(f)
        want = by_h5py(f)
    p = heft("convert", path, out)
    got = {name: facts(array) for name, array in numpy.load(out).items()} if out.exists() else {}
    if p.returncode or got != want:
        yield f"exit {p.returncode}, {len(got)} of {len(want)} arrays: {p.stderr.decode()}"
    a, b = (heft("hash", "--json", x).stdout for x in (path, out))
    if not a or json.loads(a)["model"] != json.loads(b)["model"]:
        yield f"hashes differ: {a} {b}"
    p = heft("diff", path, out)
    if p.returncode:
        yield f"diff: exit {p.returncode}: {p.stdout.decode()}"
    p = heft("convert", out, scratch / "new.bin", "--to", "keras")
    if p.returncode == 0 or b"npz" not in p.stderr:
        yield f"--to keras: exit {p.returncode}: {p.stderr.decode()}"


# ---- hostile files ----------------------------------------------------------------------------

def outside(scratch):
    """Nothing outside of the file is opened: not by links, external storage, virtual datasets."""
    secret = scratch / "secret.h5"
    with h5py.File(secret, "w") as f:
        f["x"] = numpy.arange(4.0)
    (scratch / "raw.bin").write_bytes(bytes(32))

    def link(f):
        f["x"] = h5py.ExternalLink(str(secret), "/x")

    def soft(f):
        f["there"], f["x"] = h5py.ExternalLink(str(secret), "/"), h5py.SoftLink("/there/x")

    def storage(f):
        f.create_dataset("x", (4,), "f8", external=[(str(scratch / "raw.bin"), 0, 32)])

    def virtual(f):
        layout = h5py.VirtualLayout((4,), "f8")
        layout[:] = h5py.VirtualSource(str(secret), "x", (4,))
        f.create_virtual_dataset("x", layout)
    for make in (link, soft, storage, virtual):
        path = scratch / f"{make.__name__}.h5"
        with h5py.File(path, "w", libver="latest") as f:
            f["own"] = numpy.zeros(3)
            make(f)
        yield from refused(path, UNSUPPORTED, "not opened")


def filters(scratch):
    """Filters of other libraries are not run, whatever plugins are installed."""
    path = scratch / "lzf.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=numpy.zeros(1000), compression="lzf")
    yield from refused(path, UNSUPPORTED, "LZF")
    with h5py.File(path, "a") as f:
        f["y"] = numpy.arange(3.0)
    p = heft("ls", path, env={**os.environ, "HDF5_PLUGIN_PATH": str(scratch)})
    if p.returncode or b"keras/unread" not in p.stderr or b"\ny " not in p.stdout:
        yield f"exit {p.returncode}: {p.stderr.decode()}"


def damaged_chunks(scratch):
    """A chunk that does not match its Fletcher-32 checksum, or does not inflate, is a fault."""
    for name, filters in (("sum", {"fletcher32": True}), ("gz", {"compression": "gzip"})):
        path = scratch / f"{name}.h5"
        with h5py.File(path, "w") as f:
            d = f.create_dataset("x", data=numpy.arange(500.0), chunks=(100,), **filters)
            chunk = d.id.get_chunk_info(3)
        data = bytearray(path.read_bytes())
        data[chunk.byte_offset + chunk.size // 2] ^= 0x55
        path.write_bytes(data)
        for command in (["verify", path], ["cat", path, "x"], ["hash", path],
                        ["convert", path, scratch / "out.npz"]):
            p = heft(*command)
            code = FAULTS if command[0] == "verify" else FAULTY
            if p.returncode != code or b"chunk" not in p.stdout + p.stderr:
                yield f"{name}: {command[0]}: exit {p.returncode}: {p.stderr.decode()}"
        if (scratch / "out.npz").exists():
            yield "a file was written"


def bombs(scratch):
    """Shapes and chunks beyond what the file can hold take neither memory nor time."""
    path = scratch / "bomb.h5"

    def unwritten(f):
        f.create_dataset("x", (1 << 40,), "f8")

    def chunks(f):
        f.create_dataset("x", (1 << 30,), "u1", chunks=(1,))[0] = 1

    def wide(f):
        f.create_dataset("x", (1 << 20, 1 << 20), "u1", chunks=(1 << 12, 1 << 12),
                         compression="gzip")[0, 0] = 1
    for make in (unwritten, chunks, wide):
        with h5py.File(path, "w") as f:
            make(f)
        yield from refused(path, UNSUPPORTED, "holds")
    with h5py.File(path, "w") as f:  # a group 2,000 levels deep
        group = f
        for _ in range(2000):
            group = group.create_group("deeper")
    yield from refused(path, UNSUPPORTED, "longer than 4096 bytes")


def cut_and_changed(scratch):
    """A file that ends early, or has any byte changed, is refused or read; Heft does not crash."""
    rng = numpy.random.default_rng(9)
    whole, path = scratch / "whole.h5", scratch / "changed.h5"
    with h5py.File(whole, "w") as f:
        fill_keras3(f)
        f.create_dataset("gz", data=numpy.arange(99), chunks=(10,), compression="gzip")
    data = whole.read_bytes()
    for i in range(120):
        changed = bytearray(data)
        if i < 40:
            del changed[len(data) * i // 40:]
        else:
            for at in rng.integers(0, len(data), 4):
                changed[at] = rng.integers(0, 256)
        path.write_bytes(changed)
        for command in ("ls", "verify"):
            p = heft(command, path)
            if p.returncode not in (0, FAULTS if command == "verify" else FAULTY, UNSUPPORTED):
                yield f"{command} {i}: exit {p.returncode}: {p.stderr.decode()[:200]}"


def many(scratch):
    """Each of 20,000 datasets in one group."""
    path = scratch / "many.h5"
    with h5py.File(path, "w", libver="latest") as f:
        scalar = h5py.h5s.create(h5py.h5s.SCALAR)
        for i in range(20000):
            one = h5py.h5d.create(f.id, b"v%d" % i, h5py.h5t.IEEE_F32LE, scalar)
            one.write(h5py.h5s.ALL, h5py.h5s.ALL, numpy.array(i, "<f4"))
    p = heft("ls", "--json", path)
    if p.returncode or len(json.loads(p.stdout)["tensors"]) != 20000:
        yield f"exit {p.returncode}: {p.stderr.decode()[:200]}"


def scanned(scratch):
    """`heft scan` finds layers that run code, however their names are spelled, in every place."""
    code = base64.b64encode(marshal.dumps((lambda x: x).__code__)).decode()

    def layer(kind, **config):
        return {"module": "keras.layers", "class_name": kind, "config": config}
    bad = {
        "lambda": ("keras/lambda", json.dumps(layer("Lambda"))),
        "escaped": ("keras/lambda", r'{"cl\u0061ss_name" : "L\u0061mbda"}'),
        "function": ("keras/lambda", json.dumps({"a": layer("__lambda__", value="x")})),
        "code": ("keras/bytecode", json.dumps(layer("Dense", f=[code, None]))),
        "module": ("keras/import", json.dumps({"module": "os", "class_name": "function",
                                               "config": "system"})),
    }
    good = json.dumps({"layers": [layer("Dense", name="Lambda", activation="relu")]})
    for name, (rule, text) in {**bad, "good": (None, good)}.items():
        for form in ("h5", "vlen.h5", "stored.keras", "deflated.keras", "json"):
            path = scratch / f"{name}.{form}"
            if form.endswith("h5"):
                with h5py.File(path, "w", userblock_size=512 if "vlen" in form else 0) as f:
                    f.attrs["model_config"] = text if "vlen" in form else text.encode()
                    f["x"] = numpy.zeros(3)
            elif form == "json":
                path.write_text(text)
            else:
                with zipfile.ZipFile(path, "w", 0 if "stored" in form else 8) as z:
                    z.writestr("config.json", " " * 70000 + text)
                    z.writestr("model.weights.h5", b"")
            p = heft("scan", "--json", path)
            found = [f["rule"] for f in json.loads(p.stdout)["findings"]]
            if found != ([rule] if rule else []) or p.returncode != bool(rule):
                yield f"{path.name}: exit {p.returncode}, {found}"


def without_library(scratch):
    """Without libhdf5 the message says what is missing."""
    path = scratch / "a.h5"
    with h5py.File(path, "w") as f:
        fill_keras3(f)
    name = re.search(rb"libhdf5(?:_serial)?\.so\.\d+", pathlib.Path(HEFT_LIBRARY).read_bytes())[0]
    (scratch / name.decode()).write_bytes(b"no library")
    paths = f"{scratch}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    p = heft("ls", path, env={**os.environ, "LD_LIBRARY_PATH": paths})
    if p.returncode != UNSUPPORTED or b"need libhdf5" not in p.stderr:
        yield f"exit {p.returncode}: {p.stderr.decode()}"


def another_version(scratch):
    """A libhdf5 of another version than the headers is not used, since its tables differ."""
    path = scratch / "a.h5"
    with h5py.File(path, "w") as f:
        fill_keras3(f)
    name = re.search(rb"libhdf5(?:_serial)?\.so\.\d+", pathlib.Path(HEFT_LIBRARY).read_bytes())[0]
    functions = ROOT / "src/port/libraries/hdf5_functions.def"
    source = "".join(f"int {n}(void) {{ return 0; }}\n"
                     for n in re.findall(r"FUNCTION\((\w+)\)", functions.read_text())
                     if n != "H5get_libversion")
    source += """int H5get_libversion(unsigned *a, unsigned *b, unsigned *c)
                 { *a = 1; *b = 99; *c = 3; return 0; }"""
    (scratch / "stub.c").write_text(source)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", scratch / name.decode(),
                    scratch / "stub.c"], check=True)
    paths = f"{scratch}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    p = heft("ls", path, env={**os.environ, "LD_LIBRARY_PATH": paths})
    if p.returncode != UNSUPPORTED or b"is version 1.99" not in p.stderr:
        yield f"exit {p.returncode}: {p.stderr.decode()}"


def one_process_ends(scratch):
    """The process with the library ends with the command, and does not hold its output."""
    path = scratch / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=numpy.arange(1000.0), chunks=(10,))
    for command in (["ls", path], ["cat", path, "x"]):
        p = heft(*command)  # returns when no process has stdout any more
        if p.returncode:
            yield f"exit {p.returncode}: {p.stderr.decode()}"
    p = subprocess.run(f"'{HEFT}' cat '{path}' x | head -c 1 | wc -c", shell=True,
                       capture_output=True, check=False)
    if p.stdout.strip() != b"1":
        yield str(p)


PIECES = {"model_00000.weights.h5": ["vars/0", "layers/a/vars/0", "layers/a/vars/1",
                                     "layers/größe/vars/0"],
          "model_00001.weights.h5": ["layers/größe/vars/1", "layers/c/vars/0"]}
GROUPS = {"/vars": 0, "/layers/a/vars": 0, "/layers/größe/vars": 0, "/layers/c/vars": 1}


def shards(folder, more=()):
    """Write the files of a model, as Keras does, and return all arrays."""
    arrays = {}
    folder.mkdir()
    for n, (name, paths) in enumerate([*PIECES.items(), *more]):
        with h5py.File(folder / name, "w") as f:
            for i, path in enumerate(paths):
                f[path] = arrays[path] = numpy.arange(6, dtype="f4").reshape(2, 3) + 10 * i + n
    return arrays


def index(folder, groups, total=144.0):
    files = list(PIECES)
    def names(file):
        return [names(i) for i in file] if isinstance(file, list) else (
            files[file] if isinstance(file, int) else file)
    path = folder / "model.weights.json"
    path.write_text(json.dumps({"metadata": {"total_size": total},
                                "weight_map": {k: names(v) for k, v in groups.items()}}))
    return path


def several_files(scratch):
    """An index of Keras and its files are one model, whose group may pass the end of a file."""
    arrays = shards(scratch / "m")
    whole = scratch / "whole.h5"
    with h5py.File(whole, "w") as f:
        for name, a in arrays.items():
            f[name] = a
    for groups in (GROUPS, GROUPS | {"/layers/größe/vars": [0, 1]},
                   {k: [v] for k, v in GROUPS.items()},
                   GROUPS | {"/layers/größe/vars": [1, 0, 1]}):
        path = index(scratch / "m", groups)
        for model in (path, path.parent):
            if heft("verify", model).stdout.count(b"6 tensors") != 1:
                yield f"{groups}: {heft('verify', model)}"
            for name, a in arrays.items():
                if heft("cat", model, name).stdout != a.tobytes():
                    yield f"{groups}: {name} has other values"
        if heft("hash", path).stdout.split()[-2] != heft("hash", whole).stdout.split()[-2]:
            yield f"{groups}: another hash: {heft('hash', path).stdout}"
        if heft("diff", path, whole).returncode:
            yield f"{groups}: differs: {heft('diff', path, whole).stdout.decode()}"
    p = heft("edit", path, "--set", "a=b")
    if p.returncode != UNSUPPORTED:
        yield f"edit: {p}"


def wrong_files(scratch):
    """A contradiction of an index and its files is a fault, and the model is not converted."""
    arrays = shards(scratch / "m", [("twice.weights.h5", ["layers/c/vars/0"])])
    with h5py.File(scratch / "m/chunks.weights.h5", "w") as f:
        f.create_dataset("layers/d/vars/0", data=numpy.zeros(4000), chunks=(10,), compression=1)
    (scratch / "m/text.weights.h5").write_text("no HDF5")
    cases = [("missing", GROUPS | {"/layers/d/vars": "none.weights.h5"}, b"none.weights.h5"),
             ("listed elsewhere", GROUPS | {"/layers/a/vars": 1}, b"no tensor of this group"),
             ("listed, not there", GROUPS | {"/layers/d/vars": 1}, b"no tensor of this group"),
             ("second of a list", GROUPS | {"/layers/a/vars": [0, 1]}, b"no tensor of this group"),
             ("in two files", GROUPS | {"/layers/c/vars": [1, "twice.weights.h5"]}, b"is in "),
             ("damaged", GROUPS | {"/layers/d/vars": "text.weights.h5"}, b"text.weights.h5"),
             ("chunks", GROUPS | {"/layers/d/vars": "chunks.weights.h5"}, b"h5repack"),
             ("itself", GROUPS | {"/layers/d/vars": "model.weights.json"}, b"not the name of a"),
             ("outside", GROUPS | {"/layers/d/vars": "../a.weights.h5"}, b"path component"),
             ("number", GROUPS | {"/layers/d/vars": 5.5}, b"not a string"),
             ("empty list", GROUPS | {"/layers/d/vars": []}, b"not a string"),
             ("list in a list", GROUPS | {"/layers/d/vars": [[0]]}, b"not a string"),
             ("other format", GROUPS | {"/layers/d/vars": "a.safetensors"}, b"same format")]
    for title, groups, word in cases:
        path = index(scratch / "m", groups, 0)
        for command in (["verify"], ["convert", "-f"]):
            more = [scratch / "o.safetensors"] if command[0] == "convert" else []
            p = heft(*command, path, *more)
            if not p.returncode or word not in p.stderr + p.stdout:
                yield f"{title}: {command} ends with {p.returncode}: {p.stderr} {p.stdout}"
    path = index(scratch / "m", {k: v for k, v in GROUPS.items() if "a/" not in k}, 7)
    p = heft("verify", path)
    if p.stdout.count(b"heft/shard-unlisted") != 2 or b"states 7 bytes" not in p.stdout:
        yield f"unlisted: {p.stdout.decode()}"
    if (scratch / "o.safetensors").exists():
        yield "an incomplete model was converted"
    if len(arrays) != 6:
        yield "the test is wrong"


def on_a_server(scratch):
    """A file on a server has the same arrays, and the server's failures are its own."""
    path = scratch / "a.h5"
    with h5py.File(path, "w") as f:
        fill_keras3(f)
        f.create_dataset("gz", data=numpy.arange(900000.0), chunks=(1000,), compression="gzip")
    archive(scratch / "a.keras", zipfile.ZIP_DEFLATED, fill_keras3)
    server = loopback.Server({f"/{p.name}": p.read_bytes() for p in scratch.iterdir()})
    if heft("ls", f"{server.url}/a.h5").returncode == UNSUPPORTED:
        return  # without libcurl
    server.reset()
    for name in ("a.h5", "a.keras"):
        for command in ("ls", "hash", "verify"):
            there, here = heft(command, f"{server.url}/{name}"), heft(command, scratch / name)
            a = there.stdout.replace(f"{server.url}/".encode(), f"{scratch}/".encode())
            if there.returncode or a != here.stdout:
                yield f"{command} {name}: {a} {there.stderr}, not {here.stdout}"
    server.reset()
    heft("hash", f"{server.url}/a.h5")
    for last in range(1, len(server.requests)):
        server.reset(lambda number, _, last=last: {"status": 403} if number > last else None)
        p = heft("hash", f"{server.url}/a.h5")
        refused = len(server.requests) > last  # the number varies: reads run side by side
        if refused and (p.returncode in (0, FAULTS, FAULTY) or b"403" not in p.stderr):
            yield f"403 after {last} requests: exit {p.returncode}: {p.stderr.decode()}"
    server.shutdown()


def edited(scratch):
    """Files are not edited, which leaves them as they are and names the way on."""
    path, new = scratch / "a.h5", scratch / "new.npy"
    with h5py.File(path, "w") as f:
        f["x"] = numpy.arange(4.0)
    numpy.save(new, numpy.zeros(4))
    before = path.read_bytes()
    for change in (["--set", "a=b"], ["--tensor", f"x={new}"], ["--rename", "x=y"]):
        p = heft("edit", path, *change)
        if p.returncode != UNSUPPORTED or b"Keras files are not edited" not in p.stderr:
            yield f"{change}: exit {p.returncode}: {p.stderr.decode()}"
    if path.read_bytes() != before or len(list(scratch.iterdir())) != 2:
        yield "something has changed"


# ---- the process with the library, in a program -------------------------------------------------

class Opened:
    """A file that this process has opened through the library's own functions."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(HEFT_LIBRARY))
        self.file = ctypes.c_void_p()
        st = self.lib.heft_file_open(ctypes.byref(self.file), str(path).encode(), None, None)
        assert not st, st

    def read(self, part):
        """Return the first ten numbers of a part, or the message."""
        buf, err = numpy.zeros(10), ctypes.create_string_buffer(1024)
        st = self.lib.heft_part_read(ctypes.c_void_p(buf.ctypes.data), self.file,
                                     ctypes.c_uint32(part), ctypes.c_uint64(0),
                                     ctypes.c_uint64(80), err)
        return err.raw[16:256].split(b"\0")[0].decode() if st else buf.tolist()

    def close(self):
        self.lib.heft_file_close(self.file)


def children():
    """Return the processes that this one has to wait for, or that it has."""
    me, found = str(os.getpid()), []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == me:
            found.append(int(stat.parent.name))
    return found


def make_chunks(path):
    with h5py.File(path, "w") as f:
        for i in range(4):
            f.create_dataset(f"x{i}", data=numpy.arange(1000.0) + i, chunks=(10,))


def expected(part):
    return [float(part + i) for i in range(10)]


def nothing_left(fds):
    if children():
        yield f"children left: {children()}"
    if os.listdir("/proc/self/fd") != fds:
        yield f"descriptors: {fds} before, {os.listdir('/proc/self/fd')} after"


def forked(scratch):
    """A child has no answers of its parent, and does not keep the parent from closing."""
    make_chunks(scratch / "a.h5")
    fds = os.listdir("/proc/self/fd")
    for _ in range(2):
        file = Opened(scratch / "a.h5")
        end, told = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            os.write(told[1], str(file.read(1)).encode())
            file.close()
            os.close(end[1])
            os.read(end[0], 1)
            os._exit(0)
        said, got = os.read(told[0], 300).decode(), file.read(2)
        if "open it again in this process" not in said:
            yield f"child: {said}"
        if got != expected(2):
            yield f"parent: {got}"
        file.close()  # the child is still there
        for fd in end + told:
            os.close(fd)
        os.waitpid(child, 0)
    yield from nothing_left(fds)


def killed_worker(scratch):
    """A worker that dies is an error, and nobody else's process is waited for."""
    make_chunks(scratch / "a.h5")
    fds = os.listdir("/proc/self/fd")
    with subprocess.Popen(["true"]) as other:
        while pathlib.Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2][1] != "Z":
            pass
        file = Opened(scratch / "a.h5")
        worker = next(pid for pid in children() if pid != other.pid)
        first = file.read(0)
        os.kill(worker, signal.SIGKILL)
        again, after = file.read(0), file.read(3)
        file.close()
        if os.waitpid(other.pid, 0)[0] != other.pid:
            yield "the program's own child is gone"
        other.returncode = 0
    if first != expected(0) or again != first or "libhdf5 fails on it" not in after:
        yield f"{first}, {again}, {after}"
    yield from nothing_left(fds)


def other_signal_handlers(scratch):
    """A program may ignore SIGCHLD, or wait for every child itself."""
    make_chunks(scratch / "a.h5")
    fds = os.listdir("/proc/self/fd")

    def reap(*_):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
    for handler in (signal.SIG_IGN, reap):
        before = signal.signal(signal.SIGCHLD, handler)
        for kills in (False, True):
            file = Opened(scratch / "a.h5")
            if kills:
                os.kill(children()[0], signal.SIGKILL)
            elif file.read(1) != expected(1):
                yield "other numbers"
            file.close()
        signal.signal(signal.SIGCHLD, before)
    yield from nothing_left(fds)


def killed_program(scratch):
    """The worker of a program that is killed ends."""
    make_chunks(scratch / "a.h5")
    told = os.pipe()
    program = os.fork()
    if not program:
        file = Opened(scratch / "a.h5")
        file.read(0)
        os.write(told[1], str(children()[0]).encode())
        signal.pause()
    worker = int(os.read(told[0], 20))
    os.kill(program, signal.SIGKILL)
    os.waitpid(program, 0)
    os.close(told[1])
    while pathlib.Path(f"/proc/{worker}/stat").exists():  # hangs otherwise
        time.sleep(0.01)
    os.close(told[0])
    yield from ()


def threads(scratch):
    """Several threads open, read and close files at once."""
    make_chunks(scratch / "a.h5")
    fds, wrong = os.listdir("/proc/self/fd"), []

    def work():
        for _ in range(10):
            file = Opened(scratch / "a.h5")
            wrong.extend(part for part in range(4) if file.read(part) != expected(part))
            file.close()
    at_once = [threading.Thread(target=work) for _ in range(6)]
    for t in at_once:
        t.start()
    for t in at_once:
        t.join()
    if wrong:
        yield f"other numbers: {wrong}"
    yield from nothing_left(fds)


def many_names(scratch):
    """A dataset's attributes are listed once, whatever the number of its names; its type is not."""
    path = scratch / "a.h5"
    with h5py.File(path, "w", libver="latest") as f:
        f["x"] = numpy.zeros(3, "<u2")
        f["x"].attrs["dtype"] = "bfloat16"
        f["x"].attrs.create("many", numpy.zeros(1 << 16, "i8"))
        for i in range(3000):
            f[f"y{i}"] = f["x"]
    p = heft("ls", "--json", path, preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
    types = [t["dtype"] for t in json.loads(p.stdout or b'{"tensors":[]}')["tensors"]]
    if p.returncode or types != ["bf16"] * 3001:
        yield f"exit {p.returncode}: {len(types)} tensors, {set(types)}: {p.stderr.decode()}"


TESTS = (keras3, keras2, archives, damaged_archives, bfloat16, layouts, user_block, array_types,
         links, converted, outside, filters, damaged_chunks, bombs, cut_and_changed, many, scanned,
         without_library, another_version, one_process_ends, several_files, wrong_files,
         on_a_server, edited, forked, killed_worker, other_signal_handlers, killed_program,
         threads, many_names)


def main():
    wanted = sys.argv[2:]
    results = []
    for test in TESTS:
        if wanted and test.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            results.append((test.__name__.replace("_", " "), list(test(pathlib.Path(scratch)))))
    return tap.report(results)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    HEFT_LIBRARY = pathlib.Path(HEFT).resolve().parent / "libheft.so.0"
    sys.exit(main())
