"""indexes.py - figures that depend on how many tensors there are, not on their bytes."""
import struct

from harness import BUILD, GIB, HEFT, MIB, program, seconds, statistics, take_turns, touch

MANY = 1_000_000


def opening(r, inputs, formats, quick):
    """heft_open of a million tensors, beside jansson, beside a bare loop, and each other."""
    files = {fmt: inputs.index(fmt, MANY) for fmt in formats}
    bare = [fmt for fmt, path in files.items() if program("open", "floor", path, 1)]
    touch(3 * GIB)
    rounds = 3 if quick else 11
    has_json = (BUILD / "bench" / "json").exists() and "safetensors" in files
    runs = {}
    if has_json:
        runs["json"] = lambda: program("json", files["safetensors"], 1)[0]
        runs["info"] = lambda: seconds(HEFT, "info", files["safetensors"])
    cbor = [fmt for fmt in files if fmt in ("burnpack", "ztensor") and (BUILD / "bench" / "cbor").exists()]
    for fmt in cbor:
        runs["cbor " + fmt] = lambda path=files[fmt]: program("cbor", path, 1)[0]
        runs["ls " + fmt] = lambda path=files[fmt]: seconds(HEFT, "ls", path)
    for fmt, path in files.items():
        runs[fmt] = lambda path=path: program("open", "heft", path, 1)[0]
        if fmt in bare:
            runs["floor " + fmt] = lambda path=path: program("open", "floor", path, 1)[0]
    results = take_turns(rounds, runs)
    took = {label: [v[0] if isinstance(v, list) else v for v in values]
            for label, values in results.items()}
    if has_json:
        r.add("jansson, the same header", took["json"], "s")
        r.add("heft info, the whole process", took["info"], "s")
        r.ratio("heft info", took["info"], took["json"], "jansson", 0.1)
        r.ratio("safetensors", took["safetensors"], took["json"], "jansson", 0.1)
    for fmt in files:
        r.add(f"{fmt}", took[fmt], "s")
        if fmt in cbor:
            r.add(f"libcbor, the same manifest of {fmt}", took["cbor " + fmt], "s")
            r.ratio(fmt, took[fmt], took["cbor " + fmt], "libcbor", 0.1)
            r.ratio(f"heft ls, {fmt}", took["ls " + fmt], took["cbor " + fmt], "libcbor", 0.1)
        elif fmt != "safetensors" and "safetensors" in files:
            r.ratio(fmt, took[fmt], took["safetensors"], "safetensors", 0.5)
        if fmt in bare:
            sliced = fmt == "mag" or fmt.startswith("gptrs")
            r.ratio(fmt, took[fmt], took["floor " + fmt], "bare loop", 1.5 if sliced else None)
        index, own, highest = ([v[i] / MANY for v in results[fmt]] for i in (2, 3, 4))
        r.add(f"{fmt}: the index says", index, "B/tensor", 160)
        r.add(f"{fmt}: growth of RssAnon", own, "B/tensor", 160)
        r.add(f"{fmt}: growth of VmHWM, mapped file included", highest, "B/tensor", 160)


def scaling(r, inputs, formats, quick):
    """Time per tensor, from a thousand to a million."""
    passes = {1000: 200, 10_000: 50, 100_000: 10, MANY: 1 if quick else 3}
    for fmt in formats:
        files = {n: inputs.index(fmt, n) for n in passes}
        runs = {n: lambda n=n: min(v[0] for v in program("open", "heft", files[n], passes[n]))
                for n in passes}
        for n, took in take_turns(2 if quick else 7, runs).items():
            r.add(f"{fmt}, {n} tensors", [t / n * 1e9 for t in took], "ns/tensor")


def listing(r, inputs, formats, quick):
    """heft ls of a million rows, into a file."""
    out = inputs.path("listing")
    files = {fmt: inputs.index(fmt, MANY) for fmt in formats}
    runs = {fmt: lambda path=path: seconds(HEFT, "ls", path, out=out) for fmt, path in files.items()}
    for fmt, took in take_turns(3 if quick else 7, runs).items():
        r.add(f"heft ls, {fmt}", [MANY / t for t in took], "rows/s", 1e6, at_least=True)
    inputs.drop(out, *files.values())


def verifying(r, inputs, formats, quick):
    """heft verify of a million tensors."""
    for fmt in formats:
        path = inputs.index(fmt, MANY)
        took = take_turns(3 if quick else 7, {"verify": lambda: seconds(HEFT, "verify", path)})
        r.add(f"heft verify, {fmt}, a million tensors", took["verify"], "s")
        inputs.drop(path)


def finding(r, inputs, formats, quick):
    """Opening, finding one tensor and reading its first bytes: small and large payload."""
    sizes = {"64 MiB": 64 * MIB, "8 GiB": 8 * GIB}
    for fmt in formats:
        files = {label: inputs.sparse(fmt, size) for label, size in sizes.items()}
        runs = {label: lambda path=path: statistics.median(
                    v[0] for v in program("open", "find", path, 100))
                for label, path in files.items()}
        took = take_turns(5 if quick else 11, runs)
        for label in sizes:
            r.add(f"{fmt}, one of 800 tensors, {label}", [t * 1e6 for t in took[label]], "us")
        r.ratio(f"{fmt}, 8 GiB", took["8 GiB"], took["64 MiB"], "64 MiB", 1.25)
        inputs.drop(*files.values())


def write_texts(path, tensors, texts):
    """A GGUF of so many tensors of two f32 each and one array of so many texts."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, tensors, 1) + text("tokenizer.ggml.tokens"))
        f.write(struct.pack("<IIQ", 9, 8, texts) + b"".join(text(f"token{i}") for i in range(texts)))
        f.write(b"".join(text(f"blk.{i // 8}.ffn_down_exps.weight.{i % 8}") + struct.pack("<IQIQ", 1, 2, 0, 32 * i)
                         for i in range(tensors)))
        f.write(bytes(-f.tell() % 32))
        f.truncate(f.tell() + 32 * tensors)


def texts(r, inputs, formats, quick):
    """heft ls and heft info of a GGUF with 100,000 tensors and 500,000 texts."""
    if "gguf" not in formats:
        return
    path = inputs.path("texts.gguf")
    write_texts(path, 100_000, 500_000)
    took = take_turns(3 if quick else 11, {c: lambda c=c: seconds(HEFT, c, path) for c in ("ls", "info")})
    r.add("heft ls", took["ls"], "s", 0.1)
    r.add("heft info, vocabulary and all", took["info"], "s")
    inputs.drop(path)
