#!/usr/bin/env python3
"""check_split.py HEFT: shards must be as full as the size limit allows.

Each shard must be within the limit or contain a single tensor, and must have no space for the next
tensor. Independent writers compute the sizes. TAP on stdout."""
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile

from checks import CheckFailed, require
import gen_gguf
import gen_shards
import read_gguf
import read_safetensors
import read_ztensor2
from check_shards import shards_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

ALIGN = 64


def heft(*args):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False)
    require(p.returncode == 0, f"{args}: exit {p.returncode}: {p.stderr.decode()[:300]}")
    return p.stderr.decode()


# ---- models: {name: bytes} ----

def model(seed, min_size=0, long=200):
    """Return a model with tensors of many sizes, some long names and some equal bytes."""
    r = random.Random(seed)
    sizes = [
        min_size + r.choice((0, 1, 64, r.randrange(1 << r.randrange(1, 17)))) // 4 * 4
        for _ in range(r.randrange(40, 160))
    ]
    return {
        f"{'x' * r.choice((0, 0, long))}layer.{i}": bytes([r.choice((0, i % 256))]) * n
        for i, n in enumerate(sizes)
    }


def equal_tensors(count, size):
    return {f"layers.{i}.weight": bytes(i % 251 for _ in range(size)) for i in range(count)}


# ---- size of a file with some of the tensors ----

def safetensors_bytes(tensors, contents):
    whole = gen_shards.pack({n: ("U8", [len(contents[n])], contents[n]) for n in tensors},
                            {"who": "me", "format": "pt"})
    data = sum(len(contents[n]) for n in tensors)
    text = len(whole[8:len(whole) - data].rstrip())
    return -(-(8 + text) // ALIGN) * ALIGN + data


def gguf_bytes(tensors, contents, first, files):
    meta = [("who", "str", "me")] if first else []
    meta += [("split.no", "u16", 0), ("split.count", "u16", files),
             ("split.tensors.count", "i32", len(contents))]
    infos = [(n, "f32", (len(contents[n]) // 4,), contents[n]) for n in tensors]
    return len(gen_gguf.File(infos, meta, align=32).bytes())


def ztensor_bytes(scratch, source, tensors):
    out = scratch / "one.zt"
    keep = [a for n in tensors for a in ("--keep", n)]
    heft("convert", "--force", "--format-version", "2", *keep, source, out)
    return out.stat().st_size


# ---- written shards: [(size, tensor names)] ----

def safetensors_shards(folder):
    return [(p.stat().st_size,
             [t["name"] for t in read_safetensors.read(p, of_heft=True)["tensors"]])
            for p in sorted(folder.glob("*.safetensors"))]


def gguf_shards(folder):
    return [(p.stat().st_size, [t[0] for t in read_gguf.parse(p.read_bytes())[3]])
            for p in sorted(folder.glob("*.gguf"))]


def ztensor_shards(folder, contents):
    files = {}
    for name, (label, _) in shards_of(folder, "m").items():
        files.setdefault(int(label), []).append(name)
    for label in files:
        read_ztensor2.read(folder / f"m-{label}.zt")
    return [((folder / f"m-{label}.zt").stat().st_size, [n for n in contents if n in files[label]])
            for label in sorted(files)]


def check_shard_sizes(shards, contents, max_size, size_of, messages):
    require(
        list(itertools.chain(*(names for _, names in shards))) == list(contents),
        "the order of the tensors")
    for i, (size, names) in enumerate(shards):
        require(
            size_of(names, i) == size,
            f"file {i} has {size} bytes, the judge's {size_of(names, i)}")
        if size > max_size:
            require(
                len(names) == 1,
                f"file {i} has {size} bytes, more than {max_size}, and {len(names)} tensors")
            line = (f"the tensor needs a shard of {size} bytes, more than --max-size {max_size} "
                    f'(tensor "{names[0]}")')
            require(line in messages, f"nothing is said of {names[0]}: {messages[:300]}")
        if i + 1 < len(shards):
            require(
                size_of(names + shards[i + 1][1][:1], i) > max_size,
                f"file {i} of {size} bytes could have another tensor")


def check(kind, contents, limits):
    def run(scratch):
        source = scratch / "m.safetensors"
        shape = (lambda b: ("F32", [len(b) // 4], b)) if kind == "gguf" else (lambda b:
                                                                              ("U8", [len(b)], b))
        source.write_bytes(
            gen_shards.pack({n: shape(b) for n, b in contents.items()}, {"who": "me"}))
        for max_size in limits:
            out = scratch / f"out{max_size}"
            messages = heft("split", "-v", "--name", "m", "--to", kind, "-s", max_size, source, out)
            if kind == "safetensors":
                check_shard_sizes(safetensors_shards(out), contents, max_size,
                                  lambda names, i: safetensors_bytes(names, contents), messages)
            elif kind == "gguf":
                shards = gguf_shards(out)
                check_shard_sizes(shards, contents, max_size,
                                  lambda names, i: gguf_bytes(names, contents, i == 0, len(shards)),
                                  messages)
            else:
                check_shard_sizes(ztensor_shards(out, contents), contents, max_size,
                      lambda names, i: ztensor_bytes(scratch, source, names), messages)
    return run


def run(title, job):
    with tempfile.TemporaryDirectory(prefix="heft-split-") as folder:
        try:
            job(pathlib.Path(folder))
        except (CheckFailed, OSError, ValueError, KeyError, read_safetensors.InvalidFile,
                read_ztensor2.InvalidFile, read_gguf.InvalidFile) as e:
            return title, [f"{type(e).__name__}: {e}"]
    return title, []


def main():
    jobs = [(f"safetensors, model {seed}", check("safetensors", model(seed),
                                                 (3000, 20_000, 300_000))) for seed in range(6)]
    jobs += [(f"gguf, model {seed}", check("gguf", model(seed, 4, 40), (3000, 20_000, 300_000)))
             for seed in range(6)]
    jobs += [("safetensors, 3000 small tensors",
              check("safetensors", equal_tensors(3000, 64), (200_000,))),
             ("gguf, 3000 small tensors", check("gguf", equal_tensors(3000, 64), (200_000,)))]
    jobs += [(f"ztensor, model {seed}", check("ztensor", model(seed), (300_000, 2_000_000)))
             for seed in range(2)]
    return tap.report(run(*j) for j in jobs)


if __name__ == "__main__":
    HEFT = sys.argv[1]
    sys.exit(main())
