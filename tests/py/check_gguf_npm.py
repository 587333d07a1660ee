#!/usr/bin/env python3
"""check_gguf_npm.py HEFT DIR: read the GGUF files of Heft with packages from npm.

The samples of gen_gguf.py are converted to GGUF; each reader in DIR must list the tensors and
metadata that read_gguf.py finds. TAP on stdout."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import gen_gguf
import ggml_blocks
import read_gguf
from samples import Samples

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import tap  # noqa: E402

# Valid samples that a reader does not support.
UNREAD = {
    "huggingface": {
        "arrays_v1", "arrays_v2", "arrays_v3", "arrays_big_endian", "attributes", "empty_only"
    }
}
OWN = {"version", "tensor_count", "kv_count", "tensorCount"}


def spelled(value):
    """Return a value as the script prints it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [spelled(v) for v in value]
    if isinstance(value, float):
        if math.isfinite(value):
            return "-0" if value == 0 and math.copysign(1, value) < 0 else float(value)
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return str(value) if isinstance(value, int) else value


def same(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return isinstance(got, str) and float(got) == want
    return got == want


def values(kind, value):
    return [values(value[0], v) for v in value[1]] if kind == "arr" else value


def compare(found, data):
    if "error" in found:
        yield f"{found['reader']}: {found['error'][:200]}"
        return
    _, _, meta, _, (_, infos, _) = read_gguf.parse(data)
    want = {k: spelled(values(kind, v)) for k, kind, v in meta}
    got = {k: v for k, v in found["metadata"] if k not in OWN}
    if set(got) != set(want):
        yield f"{found['reader']}: keys are {sorted(got)}"
    for key in set(got) & set(want):
        if not same(got[key], want[key]):
            yield f"{found['reader']}: {key} is {str(got[key])[:100]}, not {str(want[key])[:100]}"
    tensors = [[n, [str(d) for d in reversed(s)],
                str(ggml_blocks.TYPES[t][0]),
                str(o)] for n, t, s, o in infos]
    if found["tensors"] != tensors:
        yield f"{found['reader']}: tensors are {str(found['tensors'])[:200]}"


def convert(sample, out):
    subprocess.run([HEFT, "convert", "--to", "gguf", "--allow-loss", sample, out],
                   capture_output=True, check=True)
    return out


def main():
    with tempfile.TemporaryDirectory() as root:
        samples = Samples(root, "gguf")
        for write in (gen_gguf.good_meta, gen_gguf.good_types, gen_gguf.good_shapes,
                      gen_gguf.good_places, gen_gguf.good_vocabularies, gen_gguf.good_attributes):
            write(samples)
        sources = [p for p in sorted(samples.dir.glob("good/*.gguf")) if "not_text" not in p.name]
        written = [convert(p, p.with_suffix(".out")) for p in sources]
        p = subprocess.run(["node", HERE.parent / "js" / "read_gguf.mjs", *written], cwd=PACKAGES,
                           text=True, capture_output=True, check=True)
        results = []
        for line in p.stdout.splitlines():
            found = json.loads(line)
            path = pathlib.Path(found["path"])
            unread = path.stem in UNREAD.get(found["reader"], ())
            complaints = [] if unread and "error" in found else list(
                compare(found, path.read_bytes()))
            results.append((f"{found['reader']} reads {path.stem}", complaints))
    return tap.report(results or [("readers", ["no output"])])


HEFT, PACKAGES = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
sys.exit(main())
