#!/usr/bin/env python3
"""check_onnx_data.py HEFT: move the data of ONNX models to a file and back with
`heft convert --external-data` and `--inline`, judged by Debian's python3-onnx. TAP on stdout."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    from onnx import TensorProto, external_data_helper, helper, numpy_helper
except ImportError as e:
    print(f"1..0 # SKIP {e.name} is not installed")
    sys.exit(0)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools"), str(HERE)]
import tap  # noqa: E402
from onnx_proto import content, number  # noqa: E402

DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
        "external_data", "data_location")
LARGE = 1 << 20


def heft(*args, **more):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False, **more)


def expect(p, code, *words):
    text = p.stderr.decode() + p.stdout.decode()
    if p.returncode != code or not all(w in text for w in words):
        yield f"{p.args[1:]}: {p.returncode}, not {code}: {text}"


# ---- models -----------------------------------------------------------------------------------

def typed(name, kind, values):
    return helper.make_tensor(name, kind, [len(values)], values)


def arrays():
    rng = numpy.random.default_rng(4)
    yield "small", numpy.arange(5, dtype="<i8")
    yield "limit", numpy.arange(1024, dtype="u1")
    yield "below", numpy.arange(1023, dtype="u1")
    yield "matrix", rng.random((40, 30), "<f4")
    yield "large", rng.random((600, 500), "<f4")
    yield "halves", rng.random((64, 32)).astype("<f2")
    yield "complex", (rng.random(200) + 1j).astype("<c8")
    yield "nothing", numpy.zeros((0, 300), "<f4")
    yield "scalar", numpy.array(2.5, "<f8")
    yield "größe/\u4e2d", rng.random(400, "<f4")


def model_of_everything():
    """Weights in every place: raw and typed, in inner graphs, Constants, sparse, texts."""
    rng = numpy.random.default_rng(5)
    inner = numpy_helper.from_array(rng.random((20, 20), "<f4"), "inner")
    constant = numpy_helper.from_array(rng.random((30, 30), "<f4"), "c")
    branch = helper.make_graph([helper.make_node("Constant", [], ["k"], value=constant)], "b", [],
                               [], [inner])
    listed = [numpy_helper.from_array(a, n) for n, a in arrays()]
    listed += [typed("floats", TensorProto.FLOAT, [0.25] * 400),
               typed("ints", TensorProto.INT64, [-1, 2**40] * 200),
               typed("int32", TensorProto.INT32, [-5, 7] * 300),
               typed("f16", TensorProto.FLOAT16, [1.5] * 700),
               typed("bool", TensorProto.BOOL, [True, False] * 600),
               typed("doubles", TensorProto.DOUBLE, [1e300] * 200),
               typed("unsigned", TensorProto.UINT64, [2**63] * 200),
               typed("texts", TensorProto.STRING, [b"a", b"b"])]
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(rng.random(300, "<f4"), "sparse"),
                                       numpy_helper.from_array(numpy.arange(300)), [1000])
    nodes = [helper.make_node("If", ["x"], ["y"], then_branch=branch,
                              else_branch=helper.make_graph([], "e", [], [])),
             helper.make_node("Constant", [], ["f"], value_floats=[0.5] * 400)]
    graph = helper.make_graph(nodes, "g", [], [], listed, "a text", sparse_initializer=[sparse])
    made = helper.make_model(graph, producer_name="check")
    helper.set_model_props(made, {"a": "b"})
    return made.SerializeToString() + content(99, b"unknown field") + number(98, 5)


def tensors_of(model):
    """Return every TensorProto of a model by its place."""
    def walk(message, path):
        for field, value in message.ListFields():
            if field.message_type is None:
                continue
            many = field.label == field.LABEL_REPEATED
            for i, v in enumerate(value if many else [value]):
                at = f"{path}.{field.name}{i if many else ''}"
                if field.message_type.name == "TensorProto":
                    yield at, v
                else:
                    yield from walk(v, at)
    return dict(walk(model, ""))


def values_of(path):
    """Return the elements of every tensor, loaded by ONNX."""
    model = onnx.load(str(path))
    for t in tensors_of(model).values():
        if external_data_helper.uses_external_data(t):
            external_data_helper.load_external_data_for_tensor(t, str(path.parent))
            t.data_location = TensorProto.DEFAULT
            del t.external_data[:]
    return {at: (t.name, numpy_helper.to_array(t).tobytes(), tuple(t.dims), t.data_type)
            if t.data_type != TensorProto.STRING else list(t.string_data)
            for at, t in tensors_of(model).items()}


def graph_of(path):
    """Return everything but the elements, unknown fields included."""
    model = onnx.load(str(path), load_external_data=False)
    for t in tensors_of(model).values():
        for field in DATA:
            t.ClearField(field)
    return model.SerializeToString()


def external_of(path):
    """Return the place of the elements of each tensor that is external."""
    model = onnx.load(str(path), load_external_data=False)
    return {t.name or at: {e.key: e.value for e in t.external_data}
            for at, t in tensors_of(model).items() if t.data_location == TensorProto.EXTERNAL}


def same(a, b):
    if graph_of(a) != graph_of(b):
        yield f"{a.name} and {b.name}: the graphs differ"
    x, y = values_of(a), values_of(b)
    for at in sorted(set(x) | set(y)):
        if x.get(at) != y.get(at):
            yield f"{b.name}: {at} differs"


def listing(path):
    return heft("hash", "--json", path).stdout.decode().split('"model"')[1]


# ---- results ----------------------------------------------------------------------------------

def moved_out(scratch):
    """initializers of 1024 bytes and more go to a file, the graph stays"""
    path, out = scratch / "all.onnx", scratch / "out/m.onnx"
    path.write_bytes(model_of_everything())
    out.parent.mkdir()
    yield from expect(heft("convert", "--external-data", "m.data", path, out), 0)
    yield from same(path, out)
    got = external_of(out)
    want = {"limit", "matrix", "large", "halves", "complex", "größe/\u4e2d", "floats", "ints",
            "int32", "f16", "bool", "doubles", "unsigned", "inner"}
    if set(got) != want:
        yield f"external: {sorted(got)}, not {sorted(want)}"
    for name, e in got.items():
        step = 65536 if int(e["length"]) >= LARGE else 64
        if e["location"] != "m.data" or int(e["offset"]) % step:
            yield f"{name}: {e}"
    if sorted(os.listdir(out.parent)) != ["m.data", "m.onnx"]:
        yield f"files: {os.listdir(out.parent)}"
    ends = max(int(e["offset"]) + int(e["length"]) for e in got.values())
    if (out.parent / "m.data").stat().st_size != ends:
        yield "the file does not end with the last tensor"
    if listing(path) != listing(out):
        yield "heft hash differs"
    yield from expect(heft("verify", out), 0)
    onnx.load(str(out))


def moved_back(scratch):
    """data go back into the model: the bytes are those of ONNX"""
    listed = [numpy_helper.from_array(a, n) for n, a in arrays()]
    first = scratch / "raw.onnx"
    first.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], listed)
                                        ).SerializeToString())
    for args in ((), ("--align", 4096), ("--align", 1)):
        out, back = scratch / "raw_out.onnx", scratch / "raw_back.onnx"
        yield from expect(heft("convert", "-f", "--external-data", "raw.bin", *args, first, out), 0)
        if args and any(int(e["offset"]) % args[1] for e in external_of(out).values()):
            yield f"{args}: {external_of(out)}"
        yield from same(first, out)
        yield from expect(heft("convert", "-f", "--inline", out, back), 0)
        if back.read_bytes() != first.read_bytes():
            yield f"{args}: the model has other bytes"
    p = heft("convert", "--inline", out, "-")
    if p.returncode or p.stdout != first.read_bytes():
        yield f"on standard output: {p.returncode}, {p.stderr}"


def written_by_onnx(scratch):
    """external data as ONNX writes it, in one file and in many, attributes included"""
    for one in (True, False):
        folder = scratch / f"by_onnx_{one}"
        folder.mkdir()
        model = onnx.load_from_string((scratch / "all.onnx").read_bytes())
        empty = [t for t in model.graph.initializer if 0 in t.dims]
        for t in empty: # ONNX takes a length of 0 for none
            model.graph.initializer.remove(t)
        onnx.save(model, str(folder / "m.onnx"), save_as_external_data=True,
                  all_tensors_to_one_file=one, location="m.data" if one else None,
                  size_threshold=0, convert_attribute=True)
        inside, out = folder / "inside.onnx", folder / "new/out.onnx"
        out.parent.mkdir()
        yield from expect(heft("convert", "--inline", folder / "m.onnx", inside), 0)
        yield from same(folder / "m.onnx", inside)
        if external_of(inside):
            yield f"still external: {external_of(inside)}"
        yield from expect(heft("convert", "--external-data", "n.data", folder / "m.onnx", out), 0)
        yield from same(folder / "m.onnx", out)
        if {e["location"] for e in external_of(out).values()} != {"n.data"}:
            yield f"locations: {external_of(out)}"


def shared_data(scratch):
    """tensors that share their bytes share them again"""
    folder = scratch / "shared"
    folder.mkdir()
    a = numpy.arange(1000, dtype="<f4")
    (folder / "w.bin").write_bytes(a.tobytes())
    tensors = []
    for name in "abc":
        t = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1000],
                        data_location=TensorProto.EXTERNAL)
        t.external_data.add(key="location", value="w.bin")
        tensors.append(t)
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], tensors)),
              str(folder / "m.onnx"))
    yield from expect(heft("convert", "--external-data", "n.bin", folder / "m.onnx",
                           folder / "n.onnx"), 0)
    if (folder / "n.bin").stat().st_size != 4000:
        yield f"{(folder / 'n.bin').stat().st_size} bytes, not 4000"
    yield from same(folder / "m.onnx", folder / "n.onnx")


def read_in_ranges(scratch):
    """a model that is read, not mapped: what the parser asks for overlaps"""
    listed = [numpy_helper.from_array(numpy.zeros(400000, "<f4"), "w")]
    listed += [numpy_helper.from_array(numpy.ones(400, "<f4"), f"w{i}") for i in range(3)]
    listed += [typed(f"t{i}", TensorProto.FLOAT, [0.5] * 400) for i in range(7)]
    listed.append(typed("texts", TensorProto.STRING, [b"a", b"b"]))
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(numpy.ones(300, "<f4"), "s"),
                                       numpy_helper.from_array(numpy.arange(300)), [1000])
    graph = helper.make_graph([], "g", [], [], listed, sparse_initializer=[sparse])
    path = scratch / "ranges.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    yield from expect(heft("doctor", path), 0, "12 of 12 tensors intact")


def planned(scratch):
    """a dry run names the sizes and writes nothing"""
    folder = scratch / "dry"
    folder.mkdir()
    args = ("--external-data", "m.data", scratch / "all.onnx", folder / "m.onnx")
    p = heft("convert", "--dry-run", *args)
    if os.listdir(folder):
        yield f"written: {os.listdir(folder)}"
    yield from expect(heft("convert", *args), 0)
    for name in ("m.onnx", "m.data"):
        if f"{name}: {(folder / name).stat().st_size} bytes" not in p.stdout.decode():
            yield f"{name}: {(folder / name).stat().st_size}, said {p.stdout.decode()}"


def refused(scratch):
    """refusals leave no file"""
    folder, path = scratch / "refused", scratch / "all.onnx"
    folder.mkdir()
    out = folder / "m.onnx"
    small = folder / "small.onnx"
    small.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], [
        numpy_helper.from_array(numpy.arange(3), "s")])).SerializeToString())
    for args, code, word in [
            (("--external-data", "d", "--inline", path, out), 2, "excludes"),
            (("--external-data", "d", "--cast", "f16", path, out), 2, "exclude --cast"),
            (("--inline", "--set", "a=b", path, out), 2, "exclude --set"),
            (("--inline", "--map", "auto", path, out), 2, "exclude --map"),
            (("--inline", "--dequantize", path, out), 2, "exclude --dequantize"),
            (("--external-data", "a/d", path, out), 2, "name of a file"),
            (("--external-data", "..", path, out), 2, "name of a file"),
            (("--external-data", "m.onnx", path, out), 2, "two files"),
            (("--external-data", "d", path, "-"), 2, "two files"),
            (("--external-data", "d", "--align", "3", path, out), 2, "power of two"),
            (("--inline", path, folder / "m.safetensors"), 5, "safetensors"),
            (("--inline", path, path), 5, "the input"),
            (("--inline", path, small), 5, "--force"),
            (("--external-data", "small.onnx", path, out), 5, "--force"),
            ((path, out), 5, "--external-data")]:
        p = heft("convert", *args)
        if p.returncode != code and code == 5 and p.returncode in (2, 4):
            code = p.returncode
        yield from expect(p, code, word)
    if os.listdir(folder) != ["small.onnx"]:
        yield f"written: {os.listdir(folder)}"
    p = heft("convert", "--external-data", "d", small, out)
    yield from expect(p, 0, "1024")
    if out.read_bytes() != small.read_bytes() or (folder / "d").exists():
        yield "a small model: other bytes, or a file without data"


def damaged(scratch):
    """damaged input and a full disk: no file appears"""
    folder = scratch / "damaged"
    folder.mkdir()
    good = scratch / "out"
    for name in ("m.onnx", "m.data"):
        (folder / name).write_bytes((good / name).read_bytes())
    with (folder / "m.data").open("r+b") as f:
        f.truncate(5000)
    for args in (("--inline", folder / "m.onnx", folder / "n.onnx"),
                 ("--external-data", "n.data", folder / "m.onnx", folder / "n.onnx")):
        p = heft("convert", *args)
        if p.returncode not in (3, 4) or b"m.data" not in p.stderr:
            yield f"truncated data: {p.returncode}, {p.stderr.decode()}"
    (folder / "m.data").unlink()
    p = heft("convert", "--inline", folder / "m.onnx", folder / "n.onnx")
    if p.returncode != 4 or b"m.data" not in p.stderr:
        yield f"missing data: {p.returncode}, {p.stderr.decode()}"
    whole = (good / "m.onnx").read_bytes()
    for at in range(0, len(whole), 97):
        (folder / "m.onnx").write_bytes(whole[:at])
        p = heft("convert", "--inline", folder / "m.onnx", folder / "n.onnx")
        if p.returncode not in (3, 4, 5):
            yield f"cut at {at}: {p.returncode}, {p.stderr.decode()}"
    if os.listdir(folder) != ["m.onnx"]:
        yield f"written: {os.listdir(folder)}"
    p = heft("convert", "-f", "--inline", good / "m.onnx", "/dev/full", "--to", "onnx")
    yield from expect(p, 4)


def edited(scratch):
    """heft edit names the way on, and changes nothing"""
    folder = scratch / "edited"
    folder.mkdir()
    path = folder / "m.onnx"
    w = numpy_helper.from_array(numpy.zeros(4, "<f4"), "w")
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], [w])), str(path))
    before = path.read_bytes()
    for change in (["--set", "producer_name=x"], ["--rename", "w=v"]):
        yield from expect(heft("edit", path, *change), 5, "ONNX files are not edited", "convert")
    if path.read_bytes() != before or len(list(folder.iterdir())) != 1:
        yield "something has changed"


def too_large(scratch):
    """a model of 2 GiB is no message of protobuf"""
    folder = scratch / "vast"
    folder.mkdir()
    t = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[2**31 - 20],
                    data_location=TensorProto.EXTERNAL)
    t.external_data.add(key="location", value="w.bin")
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], [t])), str(folder / "m.onnx"))
    with (folder / "w.bin").open("wb") as f:
        f.truncate(2**31 - 20)
    yield from expect(heft("convert", "--inline", "--dry-run", folder / "m.onnx",
                           folder / "n.onnx"), 5, "2 GiB")


def folders(scratch):
    """external data in folders inside of the model's, and outside"""
    top = scratch / "folders"
    deep = top / "a/b/c/d/e/f/g"
    deep.mkdir(parents=True)
    a = numpy.arange(600, dtype="<f4")

    def model(location):
        t = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[600],
                        data_location=TensorProto.EXTERNAL)
        t.external_data.add(key="location", value=location)
        onnx.save(helper.make_model(helper.make_graph([], "g", [], [], [t])), str(top / "m.onnx"))
        return top / "m.onnx"

    for name in ("a/w.bin", "a/b/c/w.bin", "a/b/c/d/e/f/g/w.bin"):
        (top / name).write_bytes(a.tobytes())
        for location in (name, "./" + name):
            p = heft("cat", model(location), "w")
            if p.stdout != a.tobytes():
                yield f"{location}: {p.returncode}, {p.stderr.decode()}"
            yield from expect(heft("verify", top / "m.onnx"), 0)
    yield from expect(heft("convert", "--inline", model("a/w.bin"), top / "in.onnx"), 0)
    yield from same(top / "m.onnx", top / "in.onnx")
    (scratch / "secret").write_bytes(a.tobytes())
    (top / "a/link").symlink_to(scratch / "secret")
    (top / "up").symlink_to(scratch)
    for location in ("../secret", "a/../../secret", "a/link", "up/secret", "/etc/passwd",
                     "a//w.bin", "a\\w.bin", "C:/w.bin", str(scratch / "secret"), "a/./w.bin",
                     "a/w.bin/", ""):
        p = heft("cat", model(location), "w")
        if p.returncode not in (3, 4) or p.stdout:
            yield f"{location}: {p.returncode}, {p.stderr.decode()}"


def extents(scratch):
    """raw elements are where they are listed: new bytes of the same size can go there"""
    for folder in ("out", "."):
        path = scratch / folder / ("m.onnx" if folder == "out" else "all.onnx")
        listed = json.loads(heft("ls", "--json", path).stdout)["tensors"]
        copy = scratch / f"patched_{folder == 'out'}"
        copy.mkdir()
        for name in ("m.onnx", "m.data", "all.onnx"):
            if (path.parent / name).exists():
                (copy / name).write_bytes((path.parent / name).read_bytes())
        changed = set()
        for t in listed:
            part = t["parts"][0]
            if part["encoding"] != "raw" or not part["length"] or len(t["parts"]) > 1:
                continue
            with (copy / (part.get("shard") or path.name)).open("r+b") as f:
                f.seek(part["offset"])
                old = f.read(part["length"])
                f.seek(part["offset"])
                f.write(bytes(b ^ 1 for b in old))
            changed.add(t["name"])
        before, after = values_of(path), values_of(copy / path.name)
        if graph_of(path) != graph_of(copy / path.name):
            yield f"{path.name}: the graph has changed"
        for at, value in before.items():
            name = value[0]
            if not isinstance(name, str) or name not in changed:
                continue
            if after[at][1] != bytes(b ^ 1 for b in value[1]):
                yield f"{path.name}: {name} is not where it is listed"
        if len(changed) < 8:
            yield f"{path.name}: only {changed}"


def result_of(test, scratch):
    """Return the differences; what is missing is one of them."""
    try:
        return test.__doc__, list(test(scratch))
    except (OSError, ValueError) as e:
        return test.__doc__, [f"{type(e).__name__}: {e}"]


def main():
    global HEFT
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        tests = (moved_out, moved_back, written_by_onnx, shared_data, read_in_ranges, planned,
                 refused, damaged, edited, too_large, folders, extents)
        return tap.report([result_of(test, pathlib.Path(name)) for test in tests])


sys.exit(main())
