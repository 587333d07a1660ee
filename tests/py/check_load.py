#!/usr/bin/env python3
"""check_load.py LOAD_TO_BUFFER: sum tensors with examples/load_to_buffer.c.

The tensors have plain, packed and block types; the expected sums are computed here. TAP on
stdout."""
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import gen_gguf
import gen_shards
import ggml_blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

ROWS, COLUMNS = 2, 512
F4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]


def check(program, path, name, values):
    p = subprocess.run([program, path, name], capture_output=True, text=True, check=False)
    want = f"{name}: {len(values)} elements, sum "
    if p.returncode or not p.stdout.startswith(want):
        return [f"exit {p.returncode}, not '{want}...': {p.stdout}{p.stderr}"]
    got, total = float(p.stdout[len(want):]), math.fsum(values)
    close = math.isclose(got, total, rel_tol=1e-4, abs_tol=1e-4 * math.fsum(map(abs, values)))
    return [] if close else [f"the sum is {got}, not {total}"]


def main():
    program, results = sys.argv[1], []
    with tempfile.TemporaryDirectory(prefix="heft-load-") as folder:
        for t in ggml_blocks.DECODERS:
            path = pathlib.Path(folder) / f"{t}.gguf"
            tensor = gen_gguf.tensor("w", t, (ROWS, COLUMNS))
            path.write_bytes(gen_gguf.File([tensor]).bytes())
            results.append((t, check(program, path, "w", ggml_blocks.decode(t, tensor[3]))))
        plain, packed = [1.5, -2.25, 3], bytes(range(16))
        path = pathlib.Path(folder) / "m.safetensors"
        path.write_bytes(
            gen_shards.pack(
                {"f32": ("F32", [3], struct.pack("<3f", *plain)), "f4": ("F4", [4, 8], packed)}))
        results.append(("f32", check(program, path, "f32", plain)))
        results.append(
            ("f4", check(program, path, "f4", [F4[n] for b in packed for n in (b & 15, b >> 4)])))
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
