"""check_resume.py HEFT: conversions that are interrupted, and continue with --resume.

The server counts the bytes that it sends for each block of 4 MiB, so that a block that was kept and
is requested again is noticed."""
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from loopback import HEFT, Server, check, heft, run, safetensors

MIB = 1 << 20
BLOCK, HEAD = 4 * MIB, 128 << 10
large = safetensors({f"layer.{i:02}": os.urandom(5 * MIB + 8 * i) for i in range(14)})
small = safetensors({"a": b"abcd"})
shards = {f"model-0000{i}-of-00002.safetensors": safetensors({f"part{i}": os.urandom(9 * MIB)}) for i in (1, 2)}
index = json.dumps({"metadata": {"total_size": 18 * MIB}, "weight_map": {
    f"part{i}": f"model-0000{i}-of-00002.safetensors" for i in (1, 2)}}).encode()
hub = "/o/n/resolve/main/large.safetensors"
server = Server({"/large.safetensors": large, "/small.safetensors": small, hub: large,
                 "/model.safetensors.index.json": index, **{f"/{n}": d for n, d in shards.items()}})
URL = f"{server.url}/large.safetensors"
expected = {}


def kept(folder):
    return [n for n in os.listdir(folder) if ".heft-part-" in n]


def blocks_in(path):
    """The numbers of the blocks that a partial file has."""
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(24)[16:], "little")
        count = (size + BLOCK - 1) // BLOCK
        f.seek(4096)
        slots = f.read(16 * count)
    return {i for i in range(count) if any(slots[16 * i:16 * i + 16])}


def requested_blocks(path="/large.safetensors"):
    """The blocks of which more than the head of the file was requested."""
    found = set()
    for name, headers in server.requests:
        first, last = (int(n) for n in headers["Range"].removeprefix("bytes=").split("-"))
        if name == path and last >= HEAD:
            found |= set(range(first // BLOCK, last // BLOCK + 1))
    return found


def convert(folder, *args, url=URL, **env):
    return heft("convert", *args, url, str(pathlib.Path(folder, "out.bpk")), **env)


def start(folder, url=URL):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "AWS_"))}
    return subprocess.Popen([HEFT, "convert", "--resume", url, str(pathlib.Path(folder, "out.bpk"))], env=clean,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


gate = threading.Event()


def slow(allowed):
    """A plan that lets requests for the head and the first `allowed` blocks pass, others when the gate is open."""
    gate.clear()

    def plan(number, handler):
        first = int(handler.headers["Range"].removeprefix("bytes=").split("-")[0])
        if first >= max(allowed * BLOCK, HEAD):
            gate.wait(600)
        return None
    return plan


def killed(folder, allowed, by=signal.SIGKILL):
    """Kill a conversion when the first `allowed` blocks are kept, or all of them that will come."""
    server.reset(slow(allowed))
    child, before, same = start(folder), None, 0
    while same < (8 if len(before or ()) >= allowed > 0 else 40 if before else 100): # a busy machine takes long
        time.sleep(0.05)
        names = kept(folder)
        now = blocks_in(pathlib.Path(folder, names[0])) if names else None
        same = same + 1 if now == before and len(server.requests) > allowed else 0
        before = now
    child.send_signal(by)
    gate.set()
    child.communicate(timeout=600)
    names = kept(folder)
    return blocks_in(pathlib.Path(folder, names[0])) if names else set()


def whole(folder):
    return pathlib.Path(folder, "out.bpk").read_bytes() == expected["out"]


def interruptions():
    for by, numbers in ((signal.SIGKILL, (0, 1, 3, 9)), (signal.SIGTERM, (1, 9))):
        for allowed in numbers:
            with tempfile.TemporaryDirectory() as folder:
                there = killed(folder, allowed, by)
                server.reset()
                missing = set(range((len(large) + BLOCK - 1) // BLOCK)) - there
                code, _, err = convert(folder, "--resume")
                check(f"signal {by} after {allowed} blocks: {len(there)} kept blocks are not requested again",
                      code == 0 and there <= set(range(allowed)) and bool(there) == bool(allowed) and
                      whole(folder) and requested_blocks() == missing and os.listdir(folder) == ["out.bpk"], code, err, there, requested_blocks(), os.listdir(folder))


def lost_network():
    with tempfile.TemporaryDirectory() as folder:
        server.reset(lambda n, h: {"status": 404} if n > 10 else None)
        code, _, err = convert(folder, "--resume")
        names = kept(folder)
        there = blocks_in(pathlib.Path(folder, names[0])) if names else set()
        check("an error keeps the download, and says so", code == 4 and there and "continues the download" in err and
              names == os.listdir(folder), code, err, os.listdir(folder))
        server.reset()
        code, _, err = convert(folder)
        check("without --resume nothing kept is used", code == 0 and whole(folder) and kept(folder) == names and
              server.bytes >= len(large), code, err, server.bytes)
        server.reset()
        code, _, err = convert(folder, "--resume", "--force")
        check("--resume continues after an error", code == 0 and whole(folder) and not there & requested_blocks() and
              os.listdir(folder) == ["out.bpk"], code, err, there, requested_blocks())


def partial(folder):
    """Leave a partial file in the folder; return its path and blocks."""
    there = killed(folder, 8)
    path = pathlib.Path(folder, kept(folder)[0])
    return path, there


def damage():
    def zero_block(data, number, at):
        data[at + number * BLOCK:at + number * BLOCK + 100] = bytes(100)

    def swap(data, a, b, at):
        x, y = (slice(at + n * BLOCK, at + (n + 1) * BLOCK) for n in (a, b))
        data[x], data[y] = data[y], data[x]
        s, t = (slice(4096 + 16 * n, 4096 + 16 * n + 16) for n in (a, b))
        data[s], data[t] = data[t], data[s]
    for name in ("a block of zeros", "two blocks exchanged", "a flipped bit in the table", "a truncated file",
                 "a damaged head", "an empty file"):
        with tempfile.TemporaryDirectory() as folder:
            path, there = partial(folder)
            data, at, some = bytearray(path.read_bytes()), 8192, sorted(there)
            lost = set(some[:1])
            if name.startswith("a block"):
                zero_block(data, some[0], at)
            elif name.startswith("two"):
                swap(data, some[0], some[1], at)
                lost = set(some[:2])
            elif name.startswith("a flipped"):
                data[4096 + 16 * some[0]] ^= 4
            elif name.startswith("a truncated"):
                del data[at + some[-1] * BLOCK + 7:]
                lost = set(some[-1:])
            else:
                data = data[:0] if "empty" in name else bytes(8) + data[8:]
                lost = there
            path.write_bytes(data)
            server.reset()
            code, _, err = convert(folder, "--resume")
            again = requested_blocks()
            check(f"{name}: what is damaged is requested again, and nothing else", code == 0 and whole(folder) and
                  again & there == lost and os.listdir(folder) == ["out.bpk"] and
                  ("damaged" in err or "another version" in err or "empty" in name), code, err, again & there, lost)


def versions():
    other = bytearray(large)
    other[30 * MIB] ^= 1
    for name, plan, content in (("another ETag", {"etag": '"two"'}, other),
                                ("another Last-Modified", {"headers": {"Last-Modified": "now"}}, other),
                                ("another size", {}, safetensors({"a": bytes(20 * MIB)}))):
        with tempfile.TemporaryDirectory() as folder:
            partial(folder)
            server.files["/large.safetensors"] = bytes(content)
            server.reset(lambda n, h, p=plan: p)
            wanted = pathlib.Path(folder, "wanted.bpk")
            source = pathlib.Path(folder, "source.safetensors")
            source.write_bytes(content)
            heft("convert", str(source), str(wanted))
            code, _, err = convert(folder, "--resume")
            check(f"{name}: the download starts again", code == 0 and "another version" in err and
                  pathlib.Path(folder, "out.bpk").read_bytes() == wanted.read_bytes() and not kept(folder), code, err)
            server.files["/large.safetensors"] = large
    with tempfile.TemporaryDirectory() as folder:
        nameless = {"etag": ""}
        server.reset(lambda n, h: {**nameless, "cut": 9 * MIB if n > 1 else None})
        code, _, err = convert(folder, "--resume")
        check("without a version nothing is kept", code == 4 and "nothing is kept" in err and not os.listdir(folder), code,
              err, os.listdir(folder))
        server.reset(lambda n, h: nameless)
        code, _, err = convert(folder, "--resume")
        check("without a version nothing kept is used", code == 0 and whole(folder) and server.requests[-1][1].get("Range") is
              None, code, err)


def hub_digests():
    right = hashlib.sha256(large).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        server.reset(lambda n, h: {"status": 404} if n > 10 else {"headers": {"X-Linked-Etag": f'"{right}"'}})
        convert(folder, "--resume", url="hf://o/n/large.safetensors", HF_ENDPOINT=server.url)
        there = blocks_in(pathlib.Path(folder, kept(folder)[0]))
        server.reset(lambda n, h: {"etag": '"two"', "headers": {"X-Linked-Etag": f'"{right}"'}})
        code, _, err = convert(folder, "--resume", url="hf://o/n/large.safetensors", HF_ENDPOINT=server.url)
        check("the digest of the hub names the version", code == 0 and whole(folder) and there and
              not there & requested_blocks(hub), code, err, there, requested_blocks(hub))
    with tempfile.TemporaryDirectory() as folder:
        server.reset(lambda n, h: {"headers": {"X-Linked-Etag": f'"{"1" * 64}"'}})
        code, _, err = convert(folder, "--resume", url="hf://o/n/large.safetensors", HF_ENDPOINT=server.url)
        check("a wrong digest leaves nothing", code == 3 and "the hub states" in err and not os.listdir(folder), code,
              err, os.listdir(folder))


def full_disk():
    """A limit on the size of files stands for a full disk."""
    with tempfile.TemporaryDirectory() as folder:
        server.reset()
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "AWS_"))}
        out = pathlib.Path(folder, "out.bpk")
        done = subprocess.run([HEFT, "convert", "--resume", URL, str(out)], env=clean, capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (24 * MIB, 24 * MIB)))
        err = done.stderr.decode()
        check("a full disk is an error", done.returncode == 4 and not out.exists() and "kept" in err, done.returncode, err)
        if os.geteuid() == 0:
            mounted_disk(folder)


def mounted_disk(folder):
    disk = pathlib.Path(folder, "disk")
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=36m", "none", str(disk)], capture_output=True).returncode:
        return
    try:
        server.reset()
        code, _, err = heft("convert", "--resume", URL, str(disk / "out.bpk"))
        there = blocks_in(disk / kept(disk)[0])
        check("no space left: what was stored is kept", code == 4 and there and not (disk / "out.bpk").exists() and
              "No space left" in err, code, err, there)
        subprocess.run(["mount", "-o", "remount,size=400m", str(disk)], check=True)
        server.reset()
        code, _, err = heft("convert", "--resume", URL, str(disk / "out.bpk"))
        check("with space the download continues", code == 0 and not there & requested_blocks() and
              os.listdir(disk) == ["out.bpk"], code, err, there, requested_blocks())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def others():
    with tempfile.TemporaryDirectory() as folder:
        server.reset(slow(8))
        child = start(folder)
        while not kept(folder):
            time.sleep(0.02)
        server.plan = lambda n, h: None
        code, _, err = convert(folder, "--resume")
        check("two commands do not share a download", code == 4 and "another process" in err, code, err)
        child.kill()
        gate.set()
        child.communicate()
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out.bpk")
        server.reset(lambda n, h: {"status": 404} if "00002" in h.path and n > 6 else None)
        address = f"{server.url}/model.safetensors.index.json"
        code, _, err = heft("convert", "--resume", address, str(out))
        names = kept(folder)
        server.reset()
        code2, _, err2 = heft("convert", "--resume", address, str(out))
        check("shards are kept each in a file", len(names) == 2 and (code, code2) == (4, 0) and
              os.listdir(folder) == ["out.bpk"] and server.bytes < 18 * MIB, code, err, code2, err2, names, server.bytes)
    with tempfile.TemporaryDirectory() as folder:
        server.reset(lambda n, h: {"whole": True})
        code, _, err = convert(folder, "--resume")
        check("a server without ranges", code == 0 and whole(folder) and os.listdir(folder) == ["out.bpk"], code, err)
        server.reset()
        code, _, err = convert(folder, "--resume")
        check("an existing output is left alone", code == 2 or (code == 4 and not server.requests), code, err)
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.safetensors")
        source.write_bytes(small)
        out = str(pathlib.Path(folder, "b.bpk"))
        for args in ([str(source), out], [URL, "-", "--to", "bpk"], [URL, "s3://bucket/key.bpk"],
                     [URL, out, "--share", "1/2"], [URL, out, "--dry-run"]):
            code, _, err = heft("convert", "--resume", *args)
            check(f"--resume is refused: {args[1:]}", code == 2 and "--resume" in err, code, err)


def reference():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.safetensors")
        source.write_bytes(large)
        heft("convert", str(source), str(pathlib.Path(folder, "out.bpk")))
        expected["out"] = pathlib.Path(folder, "out.bpk").read_bytes()


run(f"{server.url}/small.safetensors",
    (reference, interruptions, lost_network, damage, versions, hub_digests, full_disk, others))
