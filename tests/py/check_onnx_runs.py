#!/usr/bin/env python3
"""check_onnx_runs.py HEFT DIR: run ONNX models before and after Heft has moved their data.

DIR has onnxruntime-node as npm ships it. A model that Heft wrote must load and give the same bytes.
TAP on stdout."""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tools"), str(HERE)]
import tap  # noqa: E402
from onnx_proto import constant, content, number, tensor, varint  # noqa: E402

F32, I64, BOOL, F16 = 1, 7, 9, 10


def node(kind, inputs, output, *attributes):
    return content(1, b"".join(content(1, i) for i in inputs) + content(2, output) +
                   content(4, kind) + b"".join(content(5, a) for a in attributes))


def value(name, shape):
    dims = b"".join(content(1, number(1, d)) for d in shape)
    return content(1, name) + content(2, content(1, number(1, F32) + content(2, dims)))


def ints(name, kind, values, field):
    """An initializer whose elements are numbers in a typed field."""
    packed = b"".join(varint(int(v)) for v in values.flatten())
    return content(5, tensor(name, kind, values.shape, content(field, packed)))


def network(rng):
    """y = relu(a w + bias) in one branch of If, and more: weights in every place."""
    w = rng.standard_normal((300, 200)).astype(np.float32)
    a = rng.standard_normal((4, 300)).astype(np.float32)
    bias = rng.standard_normal(200).astype(np.float32)
    halves = rng.standard_normal((4, 200)).astype(np.float16)
    places = rng.permutation(200).repeat(2)
    inner = rng.standard_normal((4, 200)).astype(np.float32)
    kept = rng.standard_normal((4, 200)).astype(np.float32)
    then = (node("Constant", [], "k", content(1, "value") + content(5, tensor(
                "", F32, kept.shape, content(9, kept.tobytes()))) + number(20, 4)) +
            node("Add", ["k", "inner"], "sum") + node("Add", ["sum", "ab"], "r") +
            content(2, "then") + constant("inner", F32, inner.shape, inner.tobytes()) +
            content(12, value("r", (4, 200))))
    other = node("Identity", ["ab"], "r2") + content(2, "else") + content(
        12, value("r2", (4, 200)))
    nodes = (node("MatMul", ["a", "w"], "aw") + node("Add", ["aw", "bias"], "ab") +
             node("If", ["yes"], "branch",
                  content(1, "then_branch") + content(6, then) + number(20, 5),
                  content(1, "else_branch") + content(6, other) + number(20, 5)) +
             node("Cast", ["halves"], "h", content(1, "to") + number(3, F32) + number(20, 2)) +
             node("Add", ["branch", "h"], "s") +
             node("Gather", ["s", "places"], "y", content(1, "axis") + number(3, 1) +
                  number(20, 2)))
    initializers = (constant("a", F32, a.shape, a.tobytes()) + constant("w", F32, w.shape,
                                                                        w.tobytes()) +
                    content(5, tensor("bias", F32, bias.shape, content(4, bias.tobytes()))) +
                    ints("halves", F16, halves.view(np.uint16), 5) +
                    ints("places", I64, places, 7) + ints("yes", BOOL, np.array(1), 5))
    graph = nodes + content(2, "g") + initializers + content(12, value("y", (4, 400)))
    want = (a @ w + bias + kept + inner + halves)[:, places]
    return number(1, 9) + content(7, graph) + content(8, number(2, 17)), want


def convert(*args):
    p = subprocess.run([sys.argv[1], "convert", "-q", *map(str, args)], capture_output=True,
                       check=False)
    return [] if not p.returncode else [f"{args}: {p.returncode}, {p.stderr.decode()}"]


def results(scratch):
    model, want = network(np.random.default_rng(3))
    first, out, back = (scratch / n for n in ("m.onnx", "out.onnx", "back.onnx"))
    first.write_bytes(model)
    wrong = convert("--external-data", "w.data", first, out) + convert("--inline", out, back)
    wide = scratch / "wide.onnx"
    wrong += convert("--external-data", "wide.data", "--align", 4096, out, wide)
    yield "data move out and back", wrong
    if wrong:
        return
    files = [first, out, back, wide]
    p = subprocess.run(["node", HERE / "run_onnx.mjs", pathlib.Path(sys.argv[2]).resolve(), *files],
                       capture_output=True, check=False)
    yield "ONNX Runtime loads all models", [p.stderr.decode()] if p.returncode else []
    if p.returncode:
        return
    outputs = [(scratch / f"{f.name}.out").read_bytes() for f in files]
    got = np.frombuffer(outputs[0], np.float32).reshape(want.shape)
    yield "the model computes what it should", [] if np.allclose(got, want, 1e-3, 1e-3) else [
        f"{got} instead of {want}"]
    for f, output in zip(files[1:], outputs[1:]):
        yield f"{f.name} gives the same bytes", [] if output == outputs[0] else ["they differ"]


def main():
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(list(results(pathlib.Path(scratch))))


sys.exit(main())
