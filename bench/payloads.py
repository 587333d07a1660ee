"""payloads.py - figures that depend on how many bytes there are."""
import os
import shutil
import subprocess

from harness import (BUILD, GIB, HEFT, MIB, peak_memory, program, read_all, seconds, statistics, take_turns,
                     touch)


def pairs(formats, quick):
    """Every format as source and as target; unless quick, the first one with every other, too."""
    for i, source in enumerate(formats):
        behind = formats[(i + 1) % len(formats)]
        for target in formats:
            if target == behind or not quick and formats[0] in (source, target):
                yield source, target


def converting(r, inputs, formats, quick):
    """heft convert beside cp of the same file, page cache warm; memory beside the mapped file."""
    size = 512 * MIB if quick else 2 * GIB
    copy, out = inputs.path("copy"), inputs.path("converted")
    last = None
    for source, target in pairs(formats, quick):
        path = inputs.model(source, size)
        if source != last:
            if last:
                inputs.drop(inputs.model(last, size))
            last = source
        argv = [HEFT, "convert", "--allow-loss", "--to", target, path, out]

        def fresh(*command):
            inputs.drop(copy, out)
            touch(size + size // 8)
            return seconds(*command)

        took = take_turns(3 if quick else 5, {
            "cp": lambda: fresh("cp", path, copy),
            "one": lambda: fresh(*argv, "--threads", "1"),
            "two": lambda: fresh(*argv, "--threads", "2"),
        })
        inputs.drop(copy, out)
        what = f"{source} to {target}"
        r.ratio(f"{what}, 1 thread", took["one"], took["cp"], "cp", 1.1)
        r.ratio(f"{what}, 2 threads", took["two"], took["cp"], "cp", 0.85)
        r.add(f"{what}, 2 threads", [os.path.getsize(path) / 1e9 / t for t in took["two"]], "GB/s")
        for threads in ("1", "2"):
            peak = peak_memory(*argv, "--threads", threads) / MIB
            inputs.drop(out)
            r.add(f"{what}, {threads} thread{'s' * (threads > '1')}: own memory", peak, "MiB", 64)
    inputs.drop(inputs.model(last, size))


def speed(size, times):
    return [size / 1e9 / t for t in times]


def processors():
    return len(os.sched_getaffinity(0))


def with_digests(inputs, source):
    """{label: file}: the same model with a checksum of every payload byte."""
    made = {}
    for label, fmt, options in [("CRC-32, embd", "embd", []),
                                ("CRC-32C, ztensor", "ztensor", ["--digest", "crc32c"]),
                                ("XXH3, ztensor 2", "ztensor", ["--format-version", "2"]),
                                ("SHA-256, ztensor", "ztensor", ["--digest", "sha256"])]:
        path = inputs.path(label.split(",")[0] + "." + fmt)
        if subprocess.run([HEFT, "convert", "--allow-loss", "--to", fmt, *options, source, path],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0:
            made[label] = path
    return made


def sweeping(r, inputs, formats, quick):
    """heft verify where checksums cover every byte, beside summing the same mapped file."""
    size = 512 * MIB if quick else 2 * GIB
    source = inputs.model("safetensors", size)
    files = with_digests(inputs, source)
    total = os.path.getsize(source)
    read_all(source)
    touch(GIB)
    limit = str(BUILD / "bench" / "limit")
    runs = {"sum": lambda: seconds(limit, "sum", source, "1"),
            "sha": lambda: program("limit", "sha256", source, 1)[0][0]}
    for label, path in files.items():
        read_all(path)
        runs[label] = lambda path=path: seconds(HEFT, "verify", path)
    took = take_turns(3 if quick else 7, runs)
    r.add("every byte summed, all processors", speed(total, took["sum"]), "GB/s")
    r.add("SHA-256 by libcrypto, one processor", speed(total, took["sha"]), "GB/s")
    for label in files:
        r.add(f"heft verify, {label}", speed(total, took[label]), "GB/s")
        slow = label.startswith("SHA")
        peer = [t / processors() for t in took["sha"]] if slow else took["sum"]
        r.add(f"heft verify, {label}: its speed : {'libcrypto, all processors' if slow else 'sum'}",
              [p / t for p, t in zip(peer, took[label])], "x", 0.9 if slow else 0.95, at_least=True,
              peer="libcrypto" if slow else "sum")
    inputs.drop(source, *files.values())


def hashing(r, inputs, formats, quick):
    """heft hash beside the tools for it."""
    size = 512 * MIB if quick else 2 * GIB
    path = inputs.model(formats[0], size)
    touch(GIB)
    runs = {"heft hash": lambda: seconds(HEFT, "hash", path),
            "sha256sum": lambda: seconds("sha256sum", path)}
    if shutil.which("b3sum"):
        runs["b3sum"] = lambda: seconds("b3sum", path)
    took = take_turns(3 if quick else 7, runs)
    for label, values in took.items():
        r.add(f"{label}, {size // MIB} MiB", speed(os.path.getsize(path), values), "GB/s")
    r.ratio("heft hash", took["heft hash"], took["sha256sum"], "sha256sum")
    inputs.drop(path)


def growing(r, inputs, formats, quick):
    """The same work from small to large payloads, page cache warm."""
    copy, out = inputs.path("copy"), inputs.path("converted")
    limit = str(BUILD / "bench" / "limit")
    for mib in (16, 128, 1024) if quick else (16, 64, 256, 1024, 4096, 8192):
        path = inputs.model("safetensors", max(mib, 72) * MIB) if mib >= 72 else \
            inputs.make(f"{mib}.safetensors", "safetensors", 1, 1024, mib * 1024 // 18)
        total, embd = os.path.getsize(path), inputs.path("checked.weights")
        read_all(path)
        seconds(HEFT, "convert", "--allow-loss", "--force", path, embd)

        def fresh(target, *command):
            inputs.drop(target)
            touch(total + total // 8)
            return seconds(*command)

        took = take_turns(2 if quick else 4, {
            "cp": lambda: fresh(copy, "cp", path, copy),
            "heft convert to embd": lambda: fresh(out, HEFT, "convert", "--allow-loss", "--to", "embd",
                                                  path, out),
            "heft verify, CRC-32": lambda: seconds(HEFT, "verify", embd),
            "sum of all bytes": lambda: seconds(limit, "sum", path, "1"),
            "heft_read_many": lambda: program("load", "heft:touched", path, 1)[0][0]})
        label = f"{mib} MiB" if mib < 1024 else f"{mib // 1024} GiB"
        for what, times in took.items():
            r.add(f"{what}, {label}", speed(total, times), "GB/s")
        inputs.drop(path, copy, out, embd)


def loading(r, inputs, formats, quick):
    """heft_read_many into the caller's memory, beside pread of the file on all processors."""
    size = 512 * MIB if quick else 2 * GIB
    path = inputs.model("safetensors", size)
    read_all(path)
    rounds = 3 if quick else 7

    def run(how, *before):
        touch(size + size // 8)
        took, got = program("load", how, path, 1)[0]
        return got / took / 1e9

    took = take_turns(rounds, {how: lambda how=how: run(how) for how in
                               ("heft:touched", "pread:touched", "heft:fresh", "pread:fresh")})
    for kind, least in (("touched", 0.95), ("fresh", 0.9)):
        ours, peer = took[f"heft:{kind}"], took[f"pread:{kind}"]
        r.add(f"into {kind} memory", ours, "GB/s")
        r.add(f"into {kind} memory: its speed : pread", [a / b for a, b in zip(ours, peer)], "x",
              least, at_least=True, peer="pread")
    if program("load", "direct:cold", path, 1):
        took = take_turns(2 if quick else 5, {how: lambda how=how: run(how)
                                              for how in ("heft:cold", "direct:cold")})
        r.add("a cold file", took["heft:cold"], "GB/s")
        r.add("a cold file: its speed : O_DIRECT",
              [a / b for a, b in zip(took["heft:cold"], took["direct:cold"])], "x", 0.95,
              at_least=True, peer="O_DIRECT")
    inputs.drop(path)


def writing(r, inputs, formats, quick):
    """The writer, from one buffer in memory, beside write() of the same buffer."""
    mib = 512 if quick else 1024
    out = inputs.path("written")

    def run(how):
        touch(mib * MIB + 128 * MIB)
        took, wrote = program("write", how, out, mib, 1)[0]
        return wrote / took / 1e9

    kinds = ["plain", *(["safetensors", "embd"] if quick else formats)]
    took = take_turns(3 if quick else 7, {how: lambda how=how: run(how) for how in kinds})
    r.add("write()", took["plain"], "GB/s")
    for how in kinds[1:]:
        r.add(f"{how}: its speed : write()", [a / b for a, b in zip(took[how], took["plain"])], "x",
              0.95, at_least=True, peer="write")


def compressing(r, inputs, formats, quick):
    """zstd components, both ways, beside zstd -T0 of the same file."""
    if not shutil.which("zstd") or "ztensor" not in formats:
        return
    path = inputs.model("safetensors", 256 * MIB if quick else GIB)
    packed, peer, out = (inputs.path(name) for name in ("packed.zt", "packed.zst", "unpacked"))
    total = os.path.getsize(path)

    def fresh(target, *command):
        inputs.drop(target)
        touch(total + total // 8)
        return seconds(*command)

    pack = [HEFT, "convert", "--compress", "zstd:1", path, packed]
    zstd = ["zstd", "-q", "-1", "-T0", path, "-o", peer]
    if subprocess.run(pack, stderr=subprocess.DEVNULL, check=False).returncode:
        return
    took = take_turns(3 if quick else 5, {
        "pack": lambda: fresh(packed, *pack), "zstd": lambda: fresh(peer, *zstd),
        "unpack": lambda: fresh(out, HEFT, "convert", "--to", "safetensors", packed, out),
        "unzstd": lambda: fresh(out, "zstd", "-q", "-d", "-T0", peer, "-o", out)})
    r.add("zstd level 1, packed", speed(total, took["pack"]), "GB/s")
    r.add("zstd level 1, packed: its speed : zstd -T0",
          [z / t for z, t in zip(took["zstd"], took["pack"])], "x", 0.9, at_least=True, peer="zstd")
    r.add("unpacked", speed(total, took["unpack"]), "GB/s")
    r.add("unpacked: its speed : zstd -d",
          [z / t for z, t in zip(took["unzstd"], took["unpack"])], "x", 0.9, at_least=True, peer="zstd")
    inputs.drop(path, packed, peer, out)


def casting(r, inputs, formats, quick):
    """heft_cast() on one thread, beside memcpy() of the same bytes."""
    size, rounds = (64, 7) if quick else (512, 15)
    touch(2 * size * MIB)
    limits = {("f32", "bf16"): 1.25}  # it reads as much as memcpy and writes half
    for pair in (("f32", "bf16"), ("f32", "f16"), ("bf16", "f32"), ("f16", "f32"), ("f64", "f32"),
                 ("f32", "f8_e4m3fn"), ("f8_e4m3fn", "f32"), ("f32", "i32")):
        lines = program("cast", *pair, size, rounds)[1:]
        casts, copies = zip(*lines)
        r.add(" to ".join(pair), [size * MIB / 1e9 / t for t in casts], "GB/s")
        r.ratio(" to ".join(pair), casts, copies, "memcpy", limits.get(pair))


def parameters(r, inputs, formats, quick):
    """The parameter store: acquiring what is there, streaming what does not fit, beside cat."""
    size = 512 * MIB if quick else 2 * GIB
    budget = size // 8 // MIB
    path = inputs.model(formats[0], size)
    touch(GIB)
    rounds = 3 if quick else 7
    threads = len(os.sched_getaffinity(0))
    took = take_turns(rounds, {
        "one": lambda: program("params", "resident", path, 1)[0][0],
        "all": lambda: program("params", "resident", path, threads)[0][0]})
    r.add("acquire and release, 1 thread", took["one"], "1/s", 5e6, at_least=True)
    r.add(f"acquire and release, {threads} threads, each", took["all"], "1/s", 5e6, at_least=True)
    took = take_turns(rounds, {
        "cat": lambda: seconds("cat", path),
        "stream": lambda: program("params", "stream", path, budget)[0][0],
        "sum": lambda: program("params", "sum", path, budget)[0][0]})
    r.add(f"streaming {size // MIB} MiB through {budget} MiB",
          [os.path.getsize(path) / 1e9 / t for t in took["stream"]], "GB/s")
    r.add("the same, every byte summed", [os.path.getsize(path) / 1e9 / t for t in took["sum"]],
          "GB/s")
    r.add("streaming, its speed : cat", [c / s for c, s in zip(took["cat"], took["stream"])], "x", 0.9,
          at_least=True, peer="cat")
    inputs.drop(path)


def embedding(r, inputs, formats, quick):
    """An EMBD file of the shapes of all-MiniLM-L6-v2, 90 MB, beside cp and cat."""
    if "embd" not in formats:
        return
    folder = inputs.sentence_model()
    source, path = folder + "/model.safetensors", inputs.path("MiniLM.weights")
    copy, out = inputs.path("copy"), inputs.path("converted.weights")
    seconds(HEFT, "convert", folder, path)
    read_all(source)
    read_all(path)
    touch(GIB // 2)

    def fresh(*command):
        inputs.drop(copy, out)
        return seconds(*command)

    took = take_turns(7 if quick else 15, {
        "find": lambda: statistics.median(v[0] for v in program("open", "find", path, 20)),
        "cat": lambda: seconds("cat", path),
        "verify": lambda: seconds(HEFT, "verify", path),
        "cp": lambda: fresh("cp", source, copy),
        "convert": lambda: fresh(HEFT, "convert", source, out),
        "folder": lambda: fresh(HEFT, "convert", folder, out),
    })
    r.add("opened, one tensor found, its first bytes read", [t * 1e6 for t in took["find"]], "us", 1000)
    r.ratio("heft verify, three checksums", took["verify"], took["cat"], "cat", 1.3)
    r.ratio("from safetensors", took["convert"], took["cp"], "cp", 1.2)
    r.ratio("from the model folder, vocabulary included", took["folder"], took["cp"], "cp", 1.2)
    inputs.drop(path, copy, out)
    shutil.rmtree(folder)
