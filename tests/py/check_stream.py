#!/usr/bin/env python3
"""check_stream.py HEFT STREAM_MLP: stream a model that is eight times the memory budget.

The result must equal that of the model in memory, in every format that supports f32, and memory
must stay within the budget and 32 MiB. TAP on stdout."""
import array
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

SIDE, LAYERS, BUDGET = 512, 128, 16  # 1 MiB a layer


def write_model(path):
    rng = random.Random(7)
    noise = array.array("f", (rng.uniform(-3, 3) for _ in range(SIDE * SIDE + LAYERS * 64)))
    size = SIDE * SIDE * 4
    header = {
        f"layers.{i}.weight":
        {"dtype": "F32", "shape": [SIDE, SIDE], "data_offsets": [i * size, (i + 1) * size]}
        for i in range(LAYERS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for i in range(LAYERS):
            f.write(noise[i * 64:i * 64 + SIDE * SIDE].tobytes())


def run(stream, path, *budget):
    p = subprocess.run([stream, path, *budget], capture_output=True, text=True)
    peak = re.search(r"peak memory\s+(\d+) kB", p.stderr)
    return p.returncode, p.stdout, int(peak[1]) if peak else 0


def formats(heft):
    listed = json.loads(
        subprocess.run([heft, "formats", "--json"], capture_output=True, check=True).stdout)
    return [f for f in listed["formats"] if f["write"] and f["suffixes"]]


def main():
    heft, stream = sys.argv[1:]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        source = str(pathlib.Path(folder, "model.safetensors"))
        write_model(source)
        code, want, _ = run(stream, source)
        results.append((code == 0
                        and any(map(float, want.split())), "the model in memory gives a result"))
        for f in formats(heft):
            path = str(pathlib.Path(folder, "copy" + f["suffixes"][0]))
            p = subprocess.run([heft, "convert", "--force", source, path], capture_output=True)
            if p.returncode == 5:
                continue
            code, got, peak = run(stream, path, str(BUDGET))
            results.append((p.returncode == 0 and code == 0
                            and got == want, f"{f['name']}: the result is equal"))
            results.append(
                (0 < peak <
                 (BUDGET + 32) << 10, f"{f['name']}: memory stays within budget + 32 MiB"))
            print(f"# {f['name']}: at most {peak >> 10} MiB")
            pathlib.Path(path).unlink(missing_ok=True)
    print(f"1..{len(results)}")
    for i, (good, what) in enumerate(results, 1):
        print("ok" if good else "not ok", i, "-", what)
    sys.exit(not all(good for good, _ in results))


main()
