#!/usr/bin/env python3
"""check_conversion_shares.py HEFT [TEST...]: shares must give the bytes of a single process.

The judge is Heft without shares. Shares are killed, find the disk full, start again, belong to a
different plan, or find damaged records. Where mpirun is installed, shares run under Open MPI. TAP
on stdout."""
import contextlib
import getpass
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from checks import CheckFailed, require

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tools"))
import tap  # noqa: E402

COUNTS = (1, 2, 4, 8)
ENGINE_VARIABLES = ("OMPI_", "PMI_", "PMIX_", "SLURM_")


def plain_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(ENGINE_VARIABLES)}


def run(*args, status=0, env=None, **options):
    p = subprocess.run([HEFT, *map(str, args)], capture_output=True, check=False,
                       env={**plain_environment(), **(env or {})}, **options)
    require(status is None or p.returncode == status,
            f"{args}: exit {p.returncode}: {p.stderr.decode()[:300]}")
    return p


def clear(out):
    shutil.rmtree(f"{out}.shares", ignore_errors=True)
    out.unlink(missing_ok=True)


def share(source, out, number, count, *options, **more):
    return run("convert", "-j1", *options, "--share", f"{number}/{count}", source, out, **more)


def shares(source, out, count, *options, order=None):
    """Write all shares; return the printed messages."""
    return b"".join(share(source, out, i, count, *options).stderr
                    for i in order or range(1, count + 1))


def require_same(out, expected, about):
    require(out.exists(), f"{about}: no output")
    require(out.read_bytes() == expected, f"{about}: other bytes")
    require(not pathlib.Path(f"{out}.shares").exists(), f"{about}: the folder is left")


def write_records(source, count, stem):
    """Write the records of all shares of verify, from stdout: with -o each would be synced."""
    for i in range(1, count + 1):
        text = run("verify", source, "--share", f"{i}/{count}").stdout
        pathlib.Path(f"{stem}.{i}").write_bytes(text)


# ---- models ----

def write_wide(path):
    """Write tensors with values that f16 cannot represent."""
    count = 20011
    header = {f"w{i}": {"dtype": "F32", "shape": [count],
                        "data_offsets": [4 * count * i, 4 * count * (i + 1)]} for i in range(3)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = struct.pack(f"<{3 * count}f", *((1e30 if i % 7 else 1.0) for i in range(3 * count)))
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_sources(folder):
    """Return models with several kinds of checksums, or none."""
    plain = folder / "plain.safetensors"
    subprocess.run([sys.executable, TREE / "tools/make_model.py", plain, "--layers", "2",
                    "--hidden", "96", "--vocab", "500"], check=True)
    sources = {"plain": plain, "wide": folder / "wide.safetensors"}
    write_wide(sources["wide"])
    for name, suffix, options in [
        ("crc", "zt", ["--digest", "crc32c"]),
        ("sha256", "zt", ["--digest", "sha256"]),
        ("zstd", "zt", ["--compress", "zstd", "--digest", "crc32c"]),
        ("csr", "zt", ["--sparsify", "*q_proj*=csr", "--digest", "crc32c"]),
        ("gten", "gten", []),
        ("npz", "npz", []),
        ("mag", "mag", ["--format-version", "100"]),
        ("embd", "weights", []),
    ]:
        sources[name] = folder / f"{name}.{suffix}"
        run("convert", *options, plain, sources[name])
    return {**sources, **make_quantised(folder, plain)}


def make_quantised(folder, plain):
    """Return quantised models: with settings beside, in Burn's form, in blocks, in words."""
    sources = {name: folder / place for name, place in [
        ("int8", "int8"), ("nvfp4", "nvfp4"), ("qfloat", "qfloat.bpk"), ("q8_0", "q8_0.gguf")]}
    for name, method in (("int8", "int8:32"), ("nvfp4", "nvfp4")):
        sources[name].mkdir()
        run("convert", "--quantize", method, plain, sources[name] / "model.safetensors")
    run("convert", sources["int8"], sources["qfloat"])
    run("convert", "--cast", "*proj*=q8_0", plain, sources["q8_0"])
    return sources


CASES = [  # source, suffix, options
    *((source, suffix, ["--compress", "none"] if source == "zstd" and suffix == "zt" else [])
      for source in ("plain", "crc", "zstd")
      for suffix in ("safetensors", "bpk", "gguf", "mag", "gptrs", "gten", "npz", "weights", "zt")),
    *(("crc", suffix, ["--cast", "*=bf16"]) for suffix in ("bpk", "gten", "zt")),
    ("wide", "zt", ["--cast", "*=f16"]),
    ("wide", "gguf", ["--cast", "*=f16"]),
    ("plain", "gguf", ["--cast", "*.weight=f16"]),
    ("crc", "safetensors", ["--transpose", "*proj*"]),
    ("sha256", "zt", []),
    ("sha256", "safetensors", []),
    ("plain", "zt", ["--digest", "sha256"]),
    ("plain", "zt", ["--digest", "crc32c"]),
    ("csr", "safetensors", ["--densify", "*"]),
    ("csr", "zt", []),
    ("plain", "zt", ["--sparsify", "*norm*=coo"]),
    ("gten", "mag", ["--format-version", "100"]),
    ("mag", "npz", []),
    ("npz", "gptrs", ["--drop", "lm_head*", "--rename", "s/blocks/b/"]),
    ("zstd", "gten", ["--cast", "*=f32"]),
    # Each share says what becomes of quantised tensors, one process once: -q
    *(("qfloat", suffix, ["-q", "--dequantize"]) for suffix in ("safetensors", "gguf", "bpk")),
    ("qfloat", "bpk", []),
    ("int8", "bpk", ["-q"]),
    ("q8_0", "bpk", ["-q"]),
    ("int8", "safetensors", ["-q", "--dequantize=f32"]),
    ("nvfp4", "gten", ["-q", "--dequantize=f32"]),
    ("q8_0", "zt", ["-q", "--dequantize", "--digest", "sha256"]),
]


def each_case(folder, sources):
    for i, (source, suffix, options) in enumerate(CASES):
        one, out = folder / f"one.{suffix}", folder / f"out.{suffix}"
        clear(one)
        about = f"{source} to {suffix} {options}"
        printed = run("convert", *options, sources[source], one).stderr
        expected = one.read_bytes()
        for count in COUNTS[i % 2::2]:
            order = random.Random(count).sample(range(1, count + 1), count)
            clear(out)
            told = shares(sources[source], out, count, *options, order=order)
            require_same(out, expected, f"{about} in {count}")
            require(sorted(told.splitlines()) == sorted(printed.splitlines()),
                    f"{about} in {count}: prints {told!r}, not {printed!r}")


def merged(folder, sources):
    """Several inputs, and a folder of shards, are written as one file."""
    other, shards = folder / "merge-other.zt", folder / "merge-shards"
    run("convert", "--rename", "s/^/other./", sources["crc"], other)
    run("split", "--count", "3", sources["plain"], shards)
    for inputs, suffix in [([sources["plain"], other], "zt"), ([shards], "bpk"),
                           ([sources["embd"], other], "safetensors")]:
        one, out = folder / f"merge-one.{suffix}", folder / f"merge-out.{suffix}"
        run("merge", *inputs, one)
        for count in COUNTS:
            clear(out)
            for i in random.Random(count).sample(range(1, count + 1), count):
                run("merge", "--share", f"{i}/{count}", *inputs, out)
            require_same(out, one.read_bytes(), f"{inputs} in {count}")
        clear(out)
        run("merge", "--share", "1/2", *inputs, out)
        run("merge", "--share", "2/2", sources["plain"], out, status=2)  # other inputs
        run("merge", "--finish", *inputs, out, status=None)
        require(not out.exists(), "an output without the second share")


def many_shares(folder, sources):
    """More shares than tensors: some are empty."""
    one, out = folder / "many-one.gten", folder / "many.gten"
    run("convert", "--keep", "*norm*", sources["crc"], one)
    shares(sources["crc"], out, 97, "--keep", "*norm*")
    require_same(out, one.read_bytes(), "97 shares")


# ---- failures ----

def damaged_source(folder, sources):
    """A wrong byte of the source is found, and no output appears."""
    for name in ("crc", "sha256", "zstd"):
        bad, out = folder / f"bad{sources[name].suffix}", folder / "bad-out.npz"
        data = bytearray(sources[name].read_bytes())
        data[len(data) // 2] ^= 1
        bad.write_bytes(data)
        expected = run("convert", bad, out, status=None).returncode
        require(expected not in (0, 2), f"{name}: exit {expected} without shares")
        codes = {share(bad, out, i, 3, status=None).returncode for i in (1, 2, 3)}
        require(codes in ({expected}, {0, expected}), f"{name}: exits {codes}, not {expected}")
        require(not out.exists(), f"{name}: there is an output")
        clear(out)


def strict_casts(folder, sources):
    out = folder / "strict.zt"
    options = ["--strict", "--cast", "*=f16"]
    one = run("convert", *options, sources["wide"], out, status=None)
    require(one.returncode, "nothing is lost")
    codes = [share(sources["wide"], out, i, 2, *options, status=None) for i in (1, 2)]
    require(one.returncode == codes[1].returncode, f"{codes[1]}, not {one}, under --strict")
    require(not out.exists(), "an output despite --strict")
    require(run("convert", *options, "--finish", sources["wide"], out, status=None).stderr
            == one.stderr, "--finish prints other losses")
    clear(out)


def other_plans(folder, sources):
    out = folder / "plans.zt"
    share(sources["plain"], out, 1, 2)
    for number, count, source, options in [
        (2, 3, "plain", []), (2, 2, "crc", []), (2, 2, "plain", ["--cast", "*=f16"]),
        (2, 2, "plain", ["--set", "a=b"]), (2, 2, "plain", ["--no-verify"])
    ]:
        p = share(sources[source], out, number, count, *options, status=2)
        require(b"another plan" in p.stderr, p.stderr)
    require(not out.exists(), "an output of two plans")
    trained = folder / "trained.safetensors"  # names and shapes of the first model, other values
    values = bytearray(sources["plain"].read_bytes())
    values[len(values) // 2:] = bytes(len(values) - len(values) // 2)
    trained.write_bytes(values)
    for more in (["--share", "2/2"], ["--finish"]):
        p = run("convert", *more, trained, out, status=2)
        require(b"another plan" in p.stderr, p.stderr)
    p = run("convert", "--finish", sources["plain"], out, status=None)
    require(b"1 of 2 shares" in p.stderr, "the number of missing shares is not printed")
    share(sources["plain"], out, 2, 2)
    require(out.exists(), "no output")
    share(sources["plain"], out, 2, 2, status=2)  # exists
    shares(sources["plain"], out, 2, "--force")
    require(not pathlib.Path(f"{out}.shares").exists(), "the folder is left after --force")


def refusals(folder, sources):
    out = folder / "refused.zt"
    for args, status in [
        (["--share", "0/2"], 2), (["--share", "3/2"], 2), (["--share", "1/2x"], 2),
        (["--share", "1/99999"], 2), (["--share", "auto"], 2), (["--share", "1/2", "--finish"], 2),
        (["--share", "1/2", "--dry-run"], 2), (["--share", "1/2", "--compress", "zstd"], None),
        (["--finish"], None), (["--share", "1/2", "--new-ids"], 2),
        (["--share", "1/2", "--fill-ids"], 2),
    ]:
        p = run("convert", *args, sources["plain"], out, status=status)
        require(p.returncode not in (0, -signal.SIGSEGV), f"{args}: exit {p.returncode}")
        require(not out.exists(), f"{args}: there is an output")
        require(not pathlib.Path(f"{out}.shares").exists(), f"{args}: there is a folder")
    for source, options in [("plain", ["--compress", "zstd"]), ("zstd", [])]:
        p = run("convert", "--share", "1/2", *options, sources[source], out, status=None)
        require(b"sizes are not known in advance; store them raw" in p.stderr, p.stderr)
    p = run("convert", "--share", "auto", sources["plain"], out, status=2)
    for name in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK", b"SLURM_PROCID"):
        require(name in p.stderr, f"{name} is not named: {p.stderr}")
    for args in (["--share", "1/2"], ["--finish"], ["--abort"]):
        p = run("convert", *args, sources["plain"], "https://127.0.0.1:1/model.zt", status=5)
        require(b"https://127.0.0.1:1/model.zt: " in p.stderr, p.stderr)


def environment(folder, sources):
    """Each engine by its variables."""
    one = folder / "env-one.zt"
    run("convert", sources["plain"], one)
    for rank, size in [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
                       ("SLURM_PROCID", "SLURM_NTASKS")]:
        out = folder / "env.zt"
        clear(out)
        for i in range(3):
            run("convert", "--share", "auto", sources["plain"], out, env={rank: str(i), size: "3"})
        require_same(out, one.read_bytes(), rank)
    run("convert", "--share", "auto", sources["plain"], folder / "e.zt", status=2,
        env={"PMI_RANK": "3", "PMI_SIZE": "3"})


def damaged_records(folder, sources):
    """A changed record never gives an output."""
    out = folder / "records.zt"
    r = random.Random(5)
    share(sources["sha256"], out, 1, 3)
    share(sources["sha256"], out, 2, 3)
    record = pathlib.Path(f"{out}.shares/share-00002-of-3")
    text = record.read_bytes()
    third = folder / "third"
    shutil.copytree(f"{out}.shares", third)
    for i in range(60):
        changed = bytearray(text)
        kind, at = i % 3, r.randrange(len(text))
        if kind == 0:
            changed[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            del changed[at:]
        else:
            changed[at:at] = text[:r.randrange(1, 200)]
        record.write_bytes(changed)
        p = share(sources["sha256"], out, 3, 3, status=None)
        require(p.returncode == 2, f"record {i}: exit {p.returncode}: {p.stderr}")
        require(not out.exists(), f"record {i}: there is an output")
    share(sources["sha256"], out, 2, 3)  # writes the share again
    one = folder / "records-one.zt"
    run("convert", sources["sha256"], one)
    require_same(out, one.read_bytes(), "after a damaged record")


def full_disk(folder, sources):
    """A share without space on the disk leaves the rest intact, and can be repeated."""
    one, out = folder / "full-one.zt", folder / "full.zt"
    run("convert", sources["crc"], one)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (one.stat().st_size // 2,) * 2)

    share(sources["crc"], out, 1, 2)
    p = share(sources["crc"], out, 2, 2, status=None, preexec_fn=limit)
    require(p.returncode not in (0, 2) and p.returncode > 0, f"exit {p.returncode}")
    require(b"full.zt" in p.stderr, f"the output is not named: {p.stderr}")
    require(not out.exists(), "there is an output")
    share(sources["crc"], out, 2, 2)
    require_same(out, one.read_bytes(), "after a full disk")


def killed(folder, sources):
    """A share is killed at many moments, and started again."""
    one, out = folder / "killed-one.gten", folder / "killed.gten"
    run("convert", sources["crc"], one)
    for i in range(12):
        clear(out)
        share(sources["crc"], out, 2, 2)
        p = subprocess.Popen([HEFT, "convert", "-j1", "--share", "1/2", sources["crc"], out],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.001 * i)
        p.kill()
        p.wait()
        if not out.exists():
            share(sources["crc"], out, 1, 2)
        run("verify", out)
        require(out.read_bytes() == one.read_bytes(), f"moment {i}: other bytes")
        if pathlib.Path(f"{out}.shares").exists():  # killed after the rename
            require(not any(p.name == "data" for p in pathlib.Path(f"{out}.shares").iterdir()),
                    f"moment {i}: data are left")


def write_set(source, out, count):
    """Write all shares of an output that no share completes: the last one comes from elsewhere."""
    clear(out)
    for i in range(1, count):
        share(source, out, i, count)
    other = out.with_name(f"other-{out.name}")
    clear(other)
    share(source, other, count, count)
    own, last = pathlib.Path(f"{out}.shares"), pathlib.Path(f"{other}.shares")
    data, more = ((x / "data").read_bytes() for x in (own, last))
    both = int.from_bytes(data, "big") | int.from_bytes(more, "big")  # elsewhere are zeros
    (own / "data").write_bytes(both.to_bytes(len(data), "big"))
    name = f"share-{count:05}-of-{count}"
    shutil.copy(last / name, own / name)
    clear(other)
    return own


def finishing(folder, sources):
    """--finish completes a whole set, refuses all else with the reason, and can be repeated."""
    one, out, crc = folder / "finish-one.zt", folder / "finish.zt", sources["crc"]
    run("convert", crc, one)

    def refused(about, status, words=b"", options=()):
        for _ in range(2):  # the second time, too: nothing was changed
            p = run("convert", "--finish", *options, crc, out, status=None)
            require(p.returncode == status and not out.exists() and words in p.stderr,
                    f"{about}: {p}")

    refused("no folder", 2, b"there are no shares")
    share(crc, out, 2, 3)
    refused("two are missing", 2, b"2 of 3 shares are missing")
    own = write_set(crc, out, 3)
    records = {n: own / f"share-0000{n}-of-3" for n in (1, 2, 3)}
    texts = {n: path.read_bytes() for n, path in records.items()}
    records[3].unlink()
    refused("one is missing", 2, b"1 of 3 shares are missing")
    records[3].mkdir()
    refused("a folder as a record", 2, b"share-00003-of-3 is no record")
    records[3].rmdir()
    records[3].symlink_to(records[2])
    refused("a link as a record", 4, b"a record of a share cannot be opened")
    records[3].unlink()
    for wrong, words in [(texts[2], b"share 2 is there twice"), (b"", b"damaged"),
                         (texts[3][:-9] + b"_" + texts[3][-8:], b"damaged"),
                         (texts[3].replace(b"1", b"2"), b"damaged")]:
        records[3].write_bytes(wrong)
        refused(f"the record {wrong}", 2, words)
    records[3].write_bytes(texts[3])
    plan = own / "plan"
    text = plan.read_bytes()
    for wrong, words in [(b"", b"is damaged"), (b"heft shares 1\n", b"is damaged"),
                         (text.replace(b"count 3", b"count 0"), b"is damaged"),
                         (text.replace(b"count 3", b"count 70000"), b"is damaged"),
                         (text.replace(b"plan ", b"plan 0"), b"another plan"),
                         (text.replace(b"count 3", b"count 2"), b"another plan")]:
        plan.write_bytes(wrong)
        refused(f"the plan {wrong}", 2, words)
    plan.write_bytes(text)
    refused("other options", 2, b"another plan", ["--set", "a=b"])
    run("convert", "--finish", crc, out)
    require_same(out, one.read_bytes(), "a whole set")
    p = run("convert", "--finish", crc, out, status=2)
    require(b"already exists" in p.stderr, p.stderr)
    run("convert", "--finish", "--force", crc, out, status=2)
    require_same(out, one.read_bytes(), "finished again")


def giving_up(folder, sources):
    """--abort removes what shares have left, and nothing else."""
    out = folder / "given-up.zt"
    own = pathlib.Path(f"{out}.shares")

    def refused(about, words, status=2, options=()):
        p = run("convert", *options, "--abort", sources["plain"], out, status=status)
        require(words in p.stderr, f"{about}: {p}")

    refused("no folder", b"there are no shares")
    for options in (["--share", "1/2"], ["--finish"], ["--dry-run"]):
        refused(f"{options}", b"--abort excludes", options=options)
    share(sources["plain"], out, 1, 2)
    run("merge", "--abort", sources["plain"], folder / "missing.zt", out)
    require(not own.exists(), "the folder is left")
    share(sources["plain"], out, 1, 2)
    (own / "letter").write_text("not of a share")
    refused("a file of somebody else", b"cannot be removed", 4)
    require([x.name for x in own.iterdir()] == ["letter"], "other files than that one are left")
    (own / "data").write_text("not of a share")
    refused("no plan", b"cannot be removed", 4)
    require((own / "data").exists(), "a file is removed from a folder without a plan")
    shutil.rmtree(own)
    own.mkdir()
    out.write_bytes(b"an older file")
    run("convert", "--abort", sources["plain"], out)
    require(not own.exists() and out.read_bytes() == b"an older file", "an empty folder is left")


def changed_between(folder, sources):
    """The data or the output change between the shares."""
    one, out, crc = folder / "between-one.zt", folder / "between.zt", sources["crc"]
    run("convert", crc, one)
    own = write_set(crc, out, 3)
    data, last = own / "data", own / "share-00003-of-3"
    kept, record = data.read_bytes(), last.read_bytes()
    for wrong in (kept[:-1], kept + b"x", b""):
        data.write_bytes(wrong)
        p = run("convert", "--finish", crc, out, status=2)
        require(b"were truncated or extended" in p.stderr and not out.exists(), p.stderr)
    data.unlink()
    p = run("convert", "--finish", crc, out, status=2)
    require(out.name.encode() in p.stderr and b"are gone, but not the records" in p.stderr,
            p.stderr)
    last.unlink()
    p = share(crc, out, 3, 3, status=2)  # the bytes of the shares with a record would be zeros
    require(b"are gone, but not the records" in p.stderr, p.stderr)
    require(not data.exists() and not out.exists(), "zeros for the data that are gone")
    out.write_bytes(b"another file")
    for words in (["--share", "3/3"], ["--finish"]):
        run("convert", *words, crc, out, status=2)
    p = run("convert", "--force", "--share", "3/3", crc, out, status=2)
    require(out.read_bytes() == b"another file", "an older file counts as the output")
    data.write_bytes(kept)
    last.write_bytes(record)
    run("convert", "--force", "--finish", crc, out)
    require_same(out, one.read_bytes(), "with --force")
    own = write_set(crc, out, 3)  # a process is killed after the last rename
    (own / "done").touch()
    (own / "data").unlink()
    shutil.copy(one, out)
    for words in (["--share", "2/3"], ["--finish"]):
        kept = shutil.copytree(own, folder / "between-kept", dirs_exist_ok=True)
        run("convert", "--force", *words, crc, out)
        require_same(out, one.read_bytes(), "completed before")
        shutil.move(kept, own)
    clear(out)
    own = write_set(crc, out, 3)
    (own / "data").rename(own / "elsewhere")
    (own / "data").symlink_to(own / "elsewhere")
    run("convert", "--finish", crc, out, status=4)
    require(not out.exists(), "a link is followed")


def all_at_once(folder, sources):
    """Every share twice, all at the same time."""
    one, out = folder / "once-one.zt", folder / "once.zt"
    run("convert", sources["crc"], one)
    for _ in range(5):
        clear(out)
        all_shares = [subprocess.Popen([HEFT, "convert", "-j1", "--force", "--share", f"{i}/4",
                                        sources["crc"], out], stderr=subprocess.PIPE)
                      for i in (1, 2, 3, 4)]
        for p in all_shares:
            err = p.communicate()[1]
            require(p.returncode == 0, f"exit {p.returncode}: {err}")
        require_same(out, one.read_bytes(), "all at once")


def results(folder, sources):
    """Findings joined from records are the output and the exit status of a single process."""
    checked, stem = [*sources.values()], folder / "verify-records"
    for name in ("crc", "embd"):  # an EMBD file has a checksum over all tensors
        data = bytearray(sources[name].read_bytes())
        for at in range(len(data) // 9, len(data), len(data) // 7):
            data[at] ^= 4
        checked.append(folder / f"results-bad{sources[name].suffix}")
        checked[-1].write_bytes(data)
    for count, source in itertools.product((1, 2, 8), checked):
        write_records(source, count, stem)
        for more in ([], ["--json"], ["--strict"]):
            one = run("verify", *more, source, status=None)
            joined = run("verify", *more, source, "--join", stem, status=None)
            require(one.returncode in (0, 1) and (one.returncode, one.stdout, one.stderr) ==
                    (joined.returncode, joined.stdout, joined.stderr),
                    f"{more} {source} in {count}: {joined}, not {one}")


def other_results(folder, sources):
    """A record of other values or of another command is refused with the reason."""
    stem = folder / "other-records"
    trained = folder / "other-values.safetensors"
    data = bytearray(sources["plain"].read_bytes())
    data[-1] ^= 64
    trained.write_bytes(data)
    write_records(sources["plain"], 2, stem)
    pathlib.Path(f"{stem}.of-hash.1").write_bytes(run("hash", trained).stdout)
    for records, reason in (stem, b"another file"), (f"{stem}.of-hash", b"not a record"):
        p = run("verify", trained, "--join", records, status=2)
        require(reason in p.stderr and not p.stdout, f"{records}: {p}")


def bad_results(folder, sources):
    """Records that are missing, damaged or of a different file are refused."""
    stem = folder / "bad-records"

    def write(numbers, count):
        for i in numbers:
            run("verify", sources["crc"], "--share", f"{i}/{count}", "-o", stem)

    def refused(about, source="crc"):
        p = run("verify", sources[source], "--join", stem, status=None)
        require(p.returncode in (2, 4) and not p.stdout, f"{about}: {p}")

    r = random.Random(3)
    write((1, 3), 3)
    refused("missing")
    write((2,), 4)
    refused("another count")
    write((2,), 3)
    refused("another file", "plain")
    record = pathlib.Path(f"{stem}.2")
    text = record.read_bytes()
    for i in range(80):
        changed = bytearray(text)
        at = r.randrange(len(text))
        if i % 2:
            changed[at] ^= 1 << r.randrange(8)
        else:
            del changed[at:]
        record.write_bytes(changed)
        refused(f"damaged at {at}")


def open_mpi(folder, sources):
    if not shutil.which("mpirun"):
        return "mpirun is not installed (openmpi-bin)"
    one = folder / "mpi-one.zt"
    run("convert", sources["crc"], one)
    env = {**plain_environment(), "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    for count in COUNTS:
        out = folder / "mpi.zt"
        clear(out)
        p = subprocess.run(["mpirun", "--oversubscribe", "--mca", "btl", "self", "-n", str(count),
                            HEFT, "convert", "--share", "auto", sources["crc"], out],
                           env=env, capture_output=True, check=False)
        require(p.returncode == 0, f"mpirun: exit {p.returncode}: {p.stderr.decode()[:500]}")
        require_same(out, one.read_bytes(), f"mpirun -n {count}")
    return None


SLURM = """\
ClusterName=heft
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={daemon}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=100
PartitionName=p Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def cluster(folder):
    """Run munged, slurmctld and slurmd on the loopback; give the environment of srun."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    host = socket.gethostname().split(".")[0]
    config = folder / "slurm.conf"
    config.write_text(SLURM.format(host=host, folder=folder, user=getpass.getuser(),
                                   control=free_port(), daemon=free_port()))
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nIgnoreSystemd=yes\n")
    env = {**plain_environment(), "SLURM_CONF": str(config)}
    started = []
    try:
        for words in (["munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
                       f"--key-file={folder}/key", f"--pid-file={folder}/munge.pid",
                       f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"],
                      ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", host]):
            with open(folder / f"{words[0]}.out", "wb") as out:
                started.append(subprocess.Popen(words, env=env, stdout=out, stderr=out))
            time.sleep(1)
        yield env
    finally:
        for p in reversed(started):
            p.terminate()
            p.wait()


def why_no_job_runs(folder, env):
    """Run a job that does nothing; return None, or the reason from srun and the daemons."""
    try:
        p = subprocess.run(["srun", "--immediate=30", "true"], env=env, capture_output=True,
                           check=False, timeout=100)
        if not p.returncode:
            return None
        reasons = [p.stderr.decode(errors="replace").strip()]
    except subprocess.TimeoutExpired:
        reasons = ["srun does not return"]
    for name in ("munged.out", "slurmctld.log", "slurmd.log"):
        log = folder / name
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        reasons += [f"{name}: {line}" for line in lines if "rror" in line or "fatal" in line][-2:]
    return "; ".join(reasons).replace("\n", " ")[:600]


def slurm(folder, sources):
    missing = [x for x in ("munged", "slurmctld", "slurmd", "srun") if not shutil.which(x)]
    if missing:
        return f"{' and '.join(missing)} not installed"
    one, own = folder / "slurm-one.zt", folder / "slurm"
    run("convert", sources["crc"], one)
    own.mkdir(mode=0o755)
    folder.chmod(0o755)
    with cluster(own) as env:
        complaint = why_no_job_runs(own, env)
        if complaint:
            return f"Slurm does not start here: {complaint}"
        for count in COUNTS:
            out = folder / "slurm.zt"
            clear(out)
            p = subprocess.run(["srun", "-n", str(count), "--overcommit", HEFT, "convert",
                                "--share", "auto", sources["crc"], out],
                               env=env, capture_output=True, check=False)
            require(p.returncode == 0, f"srun: exit {p.returncode}: {p.stderr.decode()[:500]}")
            require_same(out, one.read_bytes(), f"srun -n {count}")
    return None


def main():
    global HEFT
    HEFT = str(pathlib.Path(sys.argv[1]).resolve())
    only = sys.argv[2:]  # names of tests
    tests = [each_case, merged, many_shares, damaged_source, strict_casts, other_plans, refusals,
             environment, damaged_records, full_disk, killed, finishing,
             giving_up, changed_between, all_at_once, results, other_results, bad_results, open_mpi,
             slurm]
    reports = []
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        sources = make_sources(folder)
        for test in (x for x in tests if not only or x.__name__ in only):
            title, complaints = test.__name__.replace("_", " "), []
            try:
                skipped = test(folder, sources)
                title += f" # SKIP {skipped}" if skipped else ""
            except CheckFailed as e:
                complaints = [e]
            reports.append((title, complaints))
    return tap.report(reports)


if __name__ == "__main__":
    sys.exit(main())
