"""payloads.py - figures that depend on the size of the payload."""
import os
import shutil
import subprocess
import sys
import time

from harness import (BUILD, HEFT, MIB, peak_memory, physical_memory, program, read_all,
                     seconds, speed, measure_in_turns, prefault)
from indexes import find_ggml

LIMIT = str(BUILD / "bench" / "limit")
COPY = [HEFT, "convert", "--allow-loss",
        "--no-sync"]  # cp does not wait for the disk either


# ---- verify ------------------------------------------------------------------------------------

DIGESTS = {"CRC-32, embd": ["--to", "embd"],
           "CRC-32C, ztensor": ["--to", "ztensor", "--digest", "crc32c"],
           "XXH3, ztensor 2": ["--to", "ztensor", "--format-version", "2"],
           "SHA-256, ztensor": ["--to", "ztensor", "--digest", "sha256"]}


def verifying(r, inputs, formats, quick):
    """heft verify where checksums cover every byte, compared with a sum over the same mapped file;
    2 GiB."""
    source = inputs.model("safetensors", 144 if quick else 2016)
    path = inputs.path("checked")
    for label, options in DIGESTS.items():
        inputs.drop(path)
        if options[1] not in formats or subprocess.run([*COPY, *options, source, path], check=False,
                                                       stderr=subprocess.DEVNULL).returncode:
            continue
        inputs.settle(path)
        total, is_sha = os.path.getsize(path), label.startswith("SHA")
        limit = "sha256" if is_sha else "sum"
        took = measure_in_turns(3 if quick else 7, {"verify": lambda: seconds(HEFT, "verify", path),
                                              "peer": lambda: seconds(LIMIT, limit, path, "1")})
        r.faster(label, took["verify"], took["peer"], "libcrypto on all cores" if is_sha else "sum",
                 0.9 if is_sha else 0.95, own=(speed(total, took["verify"]), "GB/s"))
    inputs.drop(source, path)


# ---- convert -----------------------------------------------------------------------------------


def pairs(formats, quick):
    """Return pairs with every format as source and target; half of the pairs in a quick run."""
    behind = formats[1:] + formats[:1]
    return list(zip(formats, behind))[::2 if quick else 1]


def converting(r, inputs, formats, quick):
    """heft convert, digests included, compared with cp of the same file; 2 GiB, page cache warm."""
    mib = 144 if quick else 2016
    copy, out = inputs.path("copy"), inputs.path("converted")
    for source, target in pairs(formats, quick):
        path = inputs.model(source, mib)
        size = os.path.getsize(path)

        def fresh(*command):
            return inputs.timed(*command, targets=(copy, out))

        argv = [*COPY, "--to", target, path, out, "--threads"]
        took = measure_in_turns(4, {
            "cp": lambda: fresh("cp", path, copy),
            "1 thread": lambda: fresh(*argv, "1"),
            "2 threads": lambda: fresh(*argv, "2"),
        })
        for threads, limit in (("1 thread", 1.4), ("2 threads", 0.85)):
            r.ratio(f"{source} to {target}, {threads}", took[threads], took["cp"], "cp", limit,
                    own=(speed(size, took[threads]), "GB/s"))
        inputs.drop(path, copy, out)


def replacing(r, inputs, formats, quick):
    """heft convert --force over an existing file, synced to disk, compared with cp and sync -d; 2
    GiB, page cache warm."""
    path = inputs.model("safetensors", 144 if quick else 2016)
    copy, out = inputs.path("copy"), inputs.path("converted.safetensors")
    size = os.path.getsize(path)
    runs = {"cp": ["sh", "-c", 'cp "$1" "$2" && sync -d "$2"', "sh", path, copy],
            "heft": [HEFT, "convert", "--force", path, out]}
    for argv in runs.values():
        seconds(*argv)

    def settled(argv):
        os.sync()  # keep the previous run's freed blocks and pending writes out of this measurement
        return inputs.stable_memory.run(lambda: seconds(*argv))

    took = measure_in_turns(3 if quick else 7,
                      {name: lambda argv=argv: settled(argv) for name, argv in runs.items()})
    r.ratio("safetensors to safetensors", took["heft"], took["cp"], "cp and sync -d", 1.0,
            own=(speed(size, took["heft"]), "GB/s"))
    inputs.drop(path, copy, out)


def all_seconds(commands):
    """Return the wall time of commands that run at the same time and must succeed."""
    begin = time.perf_counter()
    running = [subprocess.Popen(c, stderr=subprocess.DEVNULL) for c in commands]
    codes = [p.wait() for p in running]
    took = time.perf_counter() - begin
    if any(codes):
        sys.exit(f"{' '.join(commands[0])}: ended with status {max(codes)}")
    return took


def sharing(r, inputs, formats, quick):
    """Two shares of heft convert at the same time, each with one thread, compared with one process
    with two threads; 2 GiB, page cache warm."""
    path = inputs.model("safetensors", 144 if quick else 2016)
    out, size = inputs.path("shared.zt"), os.path.getsize(path)

    def timed(commands):
        inputs.drop(out)
        return inputs.stable_memory.run(lambda: (inputs.drop(out), all_seconds(commands))[1])

    for label, options in (("copied", []), ("cast to bf16", ["--cast", "bf16"]),
                           ("with CRC-32C", ["--digest", "crc32c"])):
        words = [*COPY, *options, path, out, "--threads"]
        took = measure_in_turns(3 if quick else 7, {
            "shares": lambda words=words: timed([[*words, "1", "--share", f"{i}/2"]
                                                 for i in (1, 2)]),
            "threads": lambda words=words: timed([[*words, "2"]])})
        r.ratio(f"{label}: two shares", took["shares"], took["threads"], "two threads", 1.1,
                own=(speed(size, took["shares"]), "GB/s"))
    inputs.drop(path, out)


def memory(r, inputs, formats, quick):
    """The peak of memory besides the mapped file during conversions, two threads; 288 MiB."""
    out = inputs.path("converted")
    for source in formats:
        path, peaks = inputs.model(source, 144 if quick else 288), {}
        for target in formats if not quick or source == formats[0] else formats[:1]:
            peaks[target] = peak_memory(*COPY, "--threads", "2", "--to", target, path, out)
            inputs.drop(out)
        worst = max((peak, name) for name, peak in peaks.items() if peak is not None)
        r.add(f"{source} to {worst[1]}" + (f", the most of {len(peaks)}" if len(peaks) > 1 else ""),
              worst[0] / MIB, "MiB", 64)
        if source == formats[0]:
            for label, options in (("cast to bf16", ["--to", source, "--cast", "bf16"]),
                                   ("packed with zstd", ["--to", "ztensor", "--compress",
                                                         "zstd"]), ("SHA-256 of each part", [
                                                             "--to", "ztensor", "--digest", "sha256"
                                                         ])):
                peak = peak_memory(*COPY, "--threads", "2", *options, path, out)
                inputs.drop(out)
                if peak is not None:
                    r.add(f"{source}, {label}", peak / MIB, "MiB", 64)
        inputs.drop(path)


# ---- load, write -------------------------------------------------------------------------------


def loading_speed(inputs, how, path, *one):
    """Return GB/s of loading a file."""
    def once():
        took, got = program("load", how, path, 1, *one)[0]
        return got / took / 1e9
    return inputs.stable_memory.run(once)


def add_share(r, what, ours, peers, peer, limit):
    """Add a ratio of speeds."""
    r.faster(what, [1 / v for v in ours], [1 / v for v in peers], peer, limit, own=(ours, "GB/s"))


def loading(r, inputs, formats, quick):
    """heft_part_read_many into the caller's memory, compared with pread on all processors; 2
    GiB."""
    path = inputs.model("safetensors", 144 if quick else 2016)
    hows = ("heft:touched", "pread:touched", "heft:fresh", "pread:fresh")
    took = measure_in_turns(5,
                            {how: lambda how=how: loading_speed(inputs, how, path) for how in hows})
    add_share(r, "into touched memory", took["heft:touched"], took["pread:touched"],
              "parallel pread", 0.95)
    add_share(r, "into fresh huge pages", took["heft:fresh"], took["pread:fresh"], "parallel pread",
              0.9)
    inputs.drop(path)


def cold(r, inputs, formats, quick):
    """heft_part_read_many of a file outside the page cache, compared with reads with O_DIRECT; 2
    GiB."""
    path = inputs.model("safetensors", 504 if quick else 2016)
    if program("load", "direct:cold", path, 1):
        took = measure_in_turns(4, {how: lambda how=how: loading_speed(inputs, how, path)
                                              for how in ("heft:cold", "direct:cold")})
        add_share(r, "a cold file", took["heft:cold"], took["direct:cold"], "O_DIRECT", 0.95)
    inputs.drop(path)


def writing(r, inputs, formats, quick):
    """The writer, from one buffer in memory, compared with write() of the same buffer; 1 GiB."""
    mib, out = 128 if quick else 1024, inputs.path("written")

    def run(how):
        took, wrote = program("write", how, out, mib, 1)[0]
        return wrote / took / 1e9

    formats = formats[::2] if quick else formats
    took = measure_in_turns(5, {
        how: lambda how=how: inputs.stable_memory.run(lambda: run(how))
        for how in ["plain", *formats]
    })
    for how in formats:
        add_share(r, how, took[how], took["plain"], "write()", 0.95)


def compressing(r, inputs, formats, quick):
    """zstd parts at level 1, compression and decompression, compared with the zstd command; 1
    GiB."""
    if "ztensor" not in formats:
        return
    if not shutil.which("zstd"):
        r.missing("packed", "zstd -T0", 0.9)
        r.missing("unpacked", "zstd -d -T0", 0.9)
        return
    path = inputs.model("safetensors", 144 if quick else 1008)
    packed, peer, out = (inputs.path(name) for name in ("packed.zt", "packed.zst", "unpacked"))
    total = os.path.getsize(path)

    def fresh(target, *command):
        return inputs.timed(*command, targets=[target])

    unpack = [HEFT, "convert", "--no-sync", "--to", "safetensors", packed, out, "--threads"]
    took = measure_in_turns(
        3 if quick else 5, {
            "pack": lambda: fresh(packed, HEFT, "convert", "--no-sync", "--compress", "zstd:1",
                                  path, packed),
            "zstd": lambda: fresh(peer, "zstd", "-q", "-1", "-T0", path, "-o", peer),
            "unpack": lambda: fresh(out, *unpack, "0"), "one": lambda: fresh(out, *unpack, "1"),
            "unzstd": lambda: fresh(out, "zstd", "-q", "-d", "-T0", peer, "-o", out)
        })
    for what, ours, theirs, limit in (("packed", "pack", "zstd -T0", 0.9), ("unpacked", "unpack",
                                                                            "zstd -d -T0", 0.9),
                                      ("unpacked, 1 thread", "one", "zstd -d -T0", None)):
        times = took["zstd" if ours == "pack" else "unzstd"]
        r.faster(what, took[ours], times, theirs, limit, own=(speed(total, took[ours]), "GB/s"))
    r.add("packed: size / zstd", os.path.getsize(packed) / os.path.getsize(peer), "x",
          peer="zstd -T0")
    inputs.drop(path, packed, peer, out)


CAST_TYPES = ("f16", "bf16", "f32", "f64", "f8_e4m3fn", "f8_e5m2", "f8_e8m0", "f4_e2m1", "i8",
              "u8", "i16", "u16", "i32", "u32", "i64", "u64")


def casting(r, inputs, formats, quick):
    """heft_dtype_cast() on a single thread, compared with memcpy() of the larger side."""
    mib, rounds = (16, 4) if quick else (64, 8)
    prefault(2 * mib * MIB)
    limits = {("f32", "bf16"): 1.25}  # reads as much as memcpy and writes half
    types = CAST_TYPES[:5] if quick else CAST_TYPES
    for pair in ((a, b) for a in types for b in types if a != b):
        casts, copies = zip(*program("cast", *pair, mib, rounds)[1:])
        r.ratio(", to ".join(pair), casts, copies, "memcpy", limits.get(pair, 2.0),
                own=(speed(mib * MIB, casts), "GB/s"))


BLOCK_TYPES = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
               "q1_0", "q2_0", "tq1_0", "tq2_0", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "iq2_xxs",
               "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s", "iq1_m")


def decoding(r, inputs, formats, quick):
    """heft_dtype_cast() of block types to f32 on a single thread, compared with ggml's functions;
    processor time, 256 MiB of f32."""
    library = find_ggml()
    for name in BLOCK_TYPES[:2] if quick else BLOCK_TYPES:
        runs = library and program("blocks", library, name, 64 if quick else 256, 5)
        if runs:
            ours, theirs = zip(*runs[1:])
            r.faster(f"{name} to f32", ours, theirs, "ggml", 1.0)
        else:
            r.missing(f"{name} to f32", "ggml", 1.0)


# Types with the speed that is asked of them; ggml is 1.  The bench program compares the bytes, too.
ENCODED_TYPES = (("q4_0", 3), ("q4_1", 1), ("q5_0", 1), ("q5_1", 1), ("q8_0", 3), ("q2_k", 4),
                 ("q3_k", 4), ("q4_k", 4), ("q5_k", 4), ("q6_k", 4), ("iq4_nl", 4), ("iq4_xs", 4),
                 ("mxfp4", 1), ("nvfp4", 1))


def encoding(r, inputs, formats, quick):
    """heft_block_encode() of rows of 4096 columns on a single thread, compared with ggml's
    reference functions; processor time, 16 MiB of f32."""
    library = find_ggml()
    for name, times in ENCODED_TYPES[:2] if quick else ENCODED_TYPES:
        runs = library and program("encode", library, name, 4 if quick else 16, 5)
        if runs:
            ours, theirs, _ = zip(*runs[1:])
            r.faster(f"f32 to {name}", ours, theirs, "ggml", times)
        else:
            r.missing(f"f32 to {name}", "ggml", times)


# ---- cost against size -------------------------------------------------------------------------


def growing(r, inputs, formats, quick):
    """The same work from 16 MiB to 8 GiB, page cache warm; writing ends where two files fill the
    page cache."""
    copy, out = inputs.path("copy"), inputs.path("converted")
    for mib in (16, 128) if quick else (16, 64, 256, 1024, 4096, 8192):
        if mib * MIB > physical_memory() // 2:
            break
        path = inputs.model("embd", mib)
        total = os.path.getsize(path)
        runs = {"sum of all bytes": lambda: seconds(LIMIT, "sum", path, "1"),
                "heft verify": lambda: seconds(HEFT, "verify", path),
                "heft_part_read_many": lambda: program("load", "heft:window", path, 1)[0][0]}
        if mib <= 4096:
            runs["cp"] = lambda: inputs.timed("cp", path, copy, targets=(copy, out))
            runs["heft convert"] = lambda: inputs.timed(*COPY, "--to", "safetensors", path, out,
                                                        targets=(copy, out))
        else:
            read_all(path)  # earlier writes may have evicted a part of the file
        took = measure_in_turns(2 if quick else 3, runs)
        label = f"{mib} MiB" if mib < 1024 else f"{mib // 1024} GiB"
        for what, times in took.items():
            r.add(f"{what}, {label}", speed(total, times), "GB/s")
        inputs.drop(path, copy, out)
