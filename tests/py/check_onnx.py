#!/usr/bin/env python3
"""check_onnx.py HEFT GENERATOR: compare Heft with the library of ONNX, Debian's python3-onnx.

The library makes models, and reads the samples of GENERATOR; Heft must list the same arrays. TAP on
stdout."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    print(f"1..0 # SKIP {e.name} is not installed")
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

DTYPES = {"f32": "<f4", "f64": "<f8", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2",
          "i8": "i1", "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "u1", "bool": "?",
          "c64": "<c8", "c128": "<c16"}
NAMES = {numpy.dtype(v): k for k, v in DTYPES.items()}


def heft(*args):
    return subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)


# ---- the two lists ----------------------------------------------------------------------------

def facts(array):
    return NAMES[array.dtype], list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()


def listed(path):
    """Return name -> (dtype, shape, digest of the bytes) by Heft."""
    tensors = json.loads(heft("ls", "--json", path).stdout)["tensors"]
    return {t["name"]: (t["dtype"], t["shape"],
                        hashlib.sha256(heft("cat", path, t["name"]).stdout).hexdigest())
            for t in tensors}


def differences(expected, path):
    got = listed(path)
    for name in sorted(set(expected) | set(got)):
        if expected.get(name) != got.get(name):
            yield f"{name}: heft has {got.get(name)}, ONNX {expected.get(name)}"
    verdict = heft("verify", path)
    if verdict.returncode:
        yield verdict.stdout.decode()


# ---- models -----------------------------------------------------------------------------------

def random_arrays(seed=1):
    rng = numpy.random.default_rng(seed)
    for kind in DTYPES:
        for shape in ((3, 4), (), (0, 2), (1,), (257,)):
            raw = rng.integers(0, 2 if kind == "bool" else 256,
                               shape + (numpy.dtype(DTYPES[kind]).itemsize,), numpy.uint8)
            yield f"{kind}/{'x'.join(map(str, shape)) or 'scalar'}", raw.view(
                DTYPES[kind]).reshape(shape)


def save(graph, path, **more):
    model = helper.make_model(graph, producer_name="check")
    onnx.save(model, str(path), **more)
    return model


def graph_of(initializers, nodes=()):
    return helper.make_graph(list(nodes), "g", [], [], initializer=list(initializers))


def raw_data(scratch):
    """elements in raw_data"""
    arrays = dict(random_arrays())
    path = scratch / "raw.onnx"
    save(graph_of(numpy_helper.from_array(a, n) for n, a in arrays.items()), path)
    yield from differences({n: facts(a) for n, a in arrays.items()}, path)


def typed_data(scratch):
    """elements in typed fields"""
    arrays = {n: a for n, a in random_arrays(2) if not n.startswith(("f", "c", "bool"))}
    floats = {"f32": numpy.linspace(-3, 3, 50, dtype="<f4"),
              "f64": numpy.linspace(-3, 3, 50, dtype="<f8"),
              "f16": numpy.linspace(-3, 3, 50).astype("<f2"),
              "bool": numpy.arange(9) % 2 == 0, "c64": numpy.array([1 + 2j, -3j], "<c8"),
              "c128": numpy.array([1 + 2j, -3j], "<c16")}
    arrays |= floats
    path = scratch / "typed.onnx"
    protos = []
    for name, a in arrays.items():
        kind = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype]
        protos.append(helper.make_tensor(name, kind, a.shape, a.flatten().tolist()))
    save(graph_of(protos), path)
    yield from differences({n: facts(a) for n, a in arrays.items()}, path)


def inner_places(scratch):
    """constants and graphs inside nodes"""
    a, b, c = (numpy.arange(n, dtype="<f4") for n in (3, 4, 5))
    inner = graph_of([numpy_helper.from_array(b, "b")], [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(c, "ignored"))])
    nodes = [helper.make_node("Constant", [], ["a"], value=numpy_helper.from_array(a)),
             helper.make_node("Constant", [], ["f"], value_float=0.5),
             helper.make_node("Constant", [], ["l"], value_ints=[1, -2, 2**40]),
             helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=graph_of([]))]
    path = scratch / "inner.onnx"
    save(graph_of([], nodes), path)
    yield from differences({
        "a": facts(a), "f": facts(numpy.array(0.5, "<f4")),
        "l": facts(numpy.array([1, -2, 2**40])), "y/then_branch/b": facts(b),
        "y/then_branch/k": facts(c)}, path)


def external_data(scratch):
    """external data, in one file and in a file for each tensor"""
    arrays = {n.replace("/", "."): a for n, a in random_arrays(3) if a.size > 1}
    for name, one in (("one", True), ("many", False)):
        folder = scratch / name
        folder.mkdir()
        save(graph_of(numpy_helper.from_array(a, n) for n, a in arrays.items()),
             folder / "m.onnx", save_as_external_data=True, all_tensors_to_one_file=one,
             location="m.data" if one else None, size_threshold=0)
        yield from differences({n: facts(a) for n, a in arrays.items()}, folder / "m.onnx")
    (scratch / "one/m.data").write_bytes((scratch / "one/m.data").read_bytes()[:-1])
    p = heft("verify", scratch / "one/m.onnx")
    if p.returncode != 1 or b"pass the end of 'm.data'" not in p.stdout:
        yield f"verify of truncated external data: {p.returncode}: {p.stdout.decode()}"
    p = heft("convert", scratch / "one/m.onnx", scratch / "one/m.safetensors")
    if p.returncode in (0, 2) or (scratch / "one/m.safetensors").exists():
        yield f"conversion of truncated external data: {p.returncode}"


def converted(scratch):
    """a model becomes safetensors with the same arrays"""
    path = scratch / "raw.onnx"
    p = heft("convert", path, scratch / "out.npz")
    if p.returncode:
        yield p.stderr.decode()
        return
    with numpy.load(scratch / "out.npz") as out:
        for name, a in random_arrays():
            if out[name].shape != a.shape or out[name].tobytes() != a.tobytes():
                yield f"{name} differs"


def decoding(operator, inputs, arrays, **attributes):
    """A graph with a node that decodes the first array."""
    node = helper.make_node(operator, inputs, ["y"], **attributes)
    return graph_of([numpy_helper.from_array(a, n) for n, a in arrays.items()], [node])


def refused_weights(scratch):
    """quantised weights whose parts contradict the node"""
    q, b = numpy.ones((4, 6), "i1"), numpy.ones((4, 2, 16), "u1")
    s = numpy.ones(6, "<f4")
    linear, matmul = ("DequantizeLinear", ["q", "s", "z"]), ("MatMulNBits", ["a", "q", "s", "z"])
    cases = {
        "too few scales": (linear, {"q": q, "s": s[:5]}, {"axis": 1}),
        "an axis that is not there": (linear, {"q": q, "s": s}, {"axis": 2}),
        "a negative axis that is not there": (linear, {"q": q, "s": s}, {"axis": -3}),
        "a scale for each row, axis of columns": (linear, {"q": q, "s": s[:4]}, {"axis": 1}),
        "other blocks than scales": (linear, {"q": q, "s": s.reshape(2, 3)},
                                     {"axis": 0, "block_size": 3}),
        "too few zero points": (linear, {"q": q, "s": s, "z": q[0, :5]}, {"axis": 1}),
        "another number of columns": (matmul, {"q": b, "s": s[:8], "z": b[0, 0, :4]},
                                      {"K": 100, "N": 4, "bits": 4, "block_size": 32}),
        "blocks of other bytes": (matmul, {"q": b, "s": s[:8]},
                                  {"K": 64, "N": 4, "bits": 8, "block_size": 32}),
        "no columns": (matmul, {"q": b, "s": s[:8]}, {"N": 4, "bits": 4, "block_size": 32}),
        "too few scales of blocks": (matmul, {"q": b, "s": s[:6]},
                                     {"K": 64, "N": 4, "bits": 4, "block_size": 32}),
    }
    for title, ((operator, inputs), arrays, attributes) in cases.items():
        path, out = scratch / "refused.onnx", scratch / "refused.safetensors"
        names = [n if n in arrays or n == "a" else "" for n in inputs]
        save(decoding(operator, names, arrays, **attributes), path)
        p = heft("convert", "--dequantize=f32", path, out)
        message = p.stderr.decode()
        if p.returncode != 3 or "'q'" not in message or out.exists():
            yield f"{title}: {p.returncode}: {message}"


def stored_weights(scratch):
    """casts of quantised weights are refused, raw tensors are their integers"""
    q, s = numpy.arange(24, dtype="i1").reshape(4, 6), numpy.full(6, 0.5, "<f4")
    path = scratch / "quantised.onnx"
    save(decoding("DequantizeLinear", ["q", "s"], {"q": q, "s": s}, axis=1), path)
    p = heft("convert", "--cast", "bf16", path, scratch / "cast.safetensors")
    if p.returncode == 0 or b"--dequantize" not in p.stderr:
        yield f"a cast: {p.returncode}: {p.stderr.decode()}"
    got = numpy.frombuffer(heft("cat", "--raw-tensors", path, "q").stdout, "i1")
    if not numpy.array_equal(got, q.flatten()):
        yield f"raw: {got}"
    logical = json.loads(heft("ls", "--json", path).stdout)["tensors"]
    if [t["name"] for t in logical] != ["q"]:
        yield f"listed: {logical}"


def sample(path):
    """Compare the arrays of the graph's initializers, as far as this release reads them."""
    model = onnx.load(str(path))
    for t in model.graph.initializer:
        if t.data_type == TensorProto.STRING or t.data_type > TensorProto.COMPLEX128:
            continue
        want = numpy_helper.to_array(t)
        data = heft("cat", path, t.name).stdout
        got = numpy.frombuffer(data, want.dtype).reshape(want.shape)
        same = got == want
        if want.dtype.kind == "f": # a NaN of the library may have other bits
            same |= numpy.isnan(got) & numpy.isnan(want)
        if not same.all():
            yield f"{t.name} differs"


def main():
    global HEFT
    HEFT, generator = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        subprocess.run([sys.executable, generator, scratch], check=True)
        results = [(f.__doc__, list(f(scratch)))
                   for f in (raw_data, typed_data, inner_places, external_data, converted,
                             refused_weights, stored_weights)]
        for n in ("raw", "packed", "apart", "mixed_i64", "mixed_f32", "places", "many"):
            path = scratch / f"onnx/good/{n}.onnx"
            results.append((f"{path.name}, read by both", list(sample(path))))
        return tap.report(results)


sys.exit(main())
