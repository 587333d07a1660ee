"""check_digests.py HEFT: files of the hub are compared with the SHA-256 that the hub states.

The server counts the bytes that it sends: a file whose tensors are read in the order of the file is
downloaded once; threads that wait for each other may cost some blocks."""
import hashlib
import json
import os
import pathlib
import struct
import tempfile

from loopback import Server, check, heft, run, safetensors

MIB = 1 << 20
tensors = {f"layer.{i:02}": os.urandom(5 * MIB + 8 * i) for i in range(24)}


def reversed_order(data):
    """The file with its list of tensors from the last to the first."""
    length, = struct.unpack("<Q", data[:8])
    text = json.dumps(dict(reversed(json.loads(data[8:8 + length]).items())), separators=(",", ":")).encode()
    return data[:8] + text.ljust(length) + data[8 + length:]


large = safetensors(tensors)
small = safetensors({"a": b"abcd", "b": bytes(range(16))})
COMMIT = "0" * 40
shards = {"model-00001-of-00002.safetensors": safetensors({"a": b"1234"}),
          "model-00002-of-00002.safetensors": safetensors({"b": b"5678"})}
index = json.dumps({"metadata": {"total_size": 8}, "weight_map": {
    "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
listing = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "model.safetensors.index.json"},
                                                  *({"rfilename": n} for n in shards)]}).encode()
base = "/o/n/resolve/main"
server = Server({f"{base}/large.safetensors": large, f"{base}/small.safetensors": small,
                 f"{base}/reversed.safetensors": reversed_order(large), "/api/models/o/n/revision/main": listing,
                 f"/o/n/resolve/{COMMIT}/model.safetensors.index.json": index,
                 **{f"/o/n/resolve/{COMMIT}/{n}": d for n, d in shards.items()}})
other = Server(server.files)
server.other = other.url
LARGE, SMALL = "hf://o/n/large.safetensors", "hf://o/n/small.safetensors"


def stating(digest_of=lambda data: hashlib.sha256(data).hexdigest()):
    """A plan with the header of the hub; digest_of: the digest by the content."""
    digests = {path: digest_of(data) for path, data in server.files.items()}

    def plan(number, handler):
        path = handler.path.removeprefix("/elsewhere")
        return {"headers": {"X-Linked-Etag": f'"{digests[path]}"'}} if "/resolve/" in path else None
    return plan


def wrong(data):
    return hashlib.sha256(data + b"x").hexdigest()


def call(*args, endpoint=server.url):
    return heft(*args, HF_ENDPOINT=endpoint)


def conversions(folder):
    out = pathlib.Path(folder, "out.bpk")
    for threads, most in ("1", 1.05), ("4", 1.5):
        server.reset(stating())
        code, _, err = call("convert", "-j", threads, "--force", LARGE, str(out))
        check(f"a right digest, {threads} threads: one download", code == 0 and out.exists() and
              server.bytes < most * len(large), code, err, server.bytes, len(large))
    padded = pathlib.Path(folder, "padded.mag")
    code, _, err = call("convert", LARGE, str(padded))
    server.files[f"{base}/padded.mag"] = padded.read_bytes()
    server.reset(stating())
    code, _, err = call("convert", "--force", "hf://o/n/padded.mag", str(out))
    size = len(server.files[f"{base}/padded.mag"])
    check("bytes between tensors are part of the digest", code == 0 and size <= server.bytes < 1.5 * size, code, err,
          server.bytes, size)
    server.reset(stating())
    code, _, err = call("convert", "--force", "hf://o/n/reversed.safetensors", str(out))
    check("tensors in another order than their bytes", code == 0 and len(large) < server.bytes < 2.5 * len(large), code, err,
          server.bytes, len(large))


def mismatches(folder):
    out = pathlib.Path(folder, "new.bpk")
    for url in (LARGE, SMALL, "hf://o/n/reversed.safetensors", "hf://o/n"):
        server.reset(stating(wrong))
        code, _, err = call("convert", url, str(out))
        check(f"{url}: a wrong digest is an error, and nothing is written", code == 3 and "the hub states" in err and
              not os.listdir(folder), code, err, os.listdir(folder))
    flipped = bytearray(large)
    flipped[70 * MIB] ^= 1
    server.reset(stating())
    server.files[f"{base}/large.safetensors"] = bytes(flipped)
    code, _, err = call("convert", LARGE, str(out))
    check("a flipped bit is an error", code == 3 and not out.exists(), code, err)
    server.files[f"{base}/large.safetensors"] = large
    server.reset(stating(wrong))
    code, _, err = call("convert", "--no-verify", SMALL, str(out))
    check("--no-verify converts", code == 0 and out.exists(), code, err)
    out.unlink()
    code, _, err = call("convert", "--keep", "a", SMALL, str(out))
    check("a choice of tensors is not compared", code == 0, code, err)
    out.unlink()
    code, _, err = heft("convert", f"{server.url}{base}/small.safetensors", str(out))
    check("only the hub states digests", code == 0, code, err)
    out.unlink()
    for name, text in (("short", "0" * 63), ("not hexadecimal", "z" * 64), ("long", "0" * 65)):
        server.reset(lambda n, h, t=text: {"headers": {"X-Linked-Etag": f'"{t}"'}})
        code, _, err = call("convert", "--force", SMALL, str(out))
        check(f"a header that is {name} is no digest", code == 0, code, err)
    server.reset(lambda n, h: {"headers": {"X-Linked-Etag": f'"{n:064}"'}})
    code, _, err = call("convert", "--force", LARGE, str(out))
    check("another digest later is another version", code == 4 and "changed on the server" in err, code, err)


def verification():
    server.reset(stating())
    code, out, err = call("verify", SMALL)
    check("verify says that the digest was compared", code == 0 and b"the digest that the hub states" in out, code, out)
    server.reset(stating(wrong))
    code, out, err = call("verify", "--json", LARGE)
    findings = json.loads(out)["findings"] if out else []
    check("verify reports a wrong digest as a fault", code == 1 and [f["rule"] for f in findings] == ["hub/sha256"] and
          findings[0]["length"] == len(large), code, out, err)
    server.reset(stating(wrong))
    code, out, err = call("verify", "--json", "hf://o/n")
    findings = json.loads(out)["findings"] if out else []
    check("verify compares every shard", code == 1 and sorted(f.get("shard", "") for f in findings) ==
          ["", *sorted(shards)], code, out, err)
    server.reset(stating(wrong))
    code, out, err = call("verify", "--quick", LARGE)
    check("--quick does not read whole files", code == 0 and server.bytes < MIB, code, out, err, server.bytes)


def redirects(folder):
    out = pathlib.Path(folder, "redirected.bpk")
    for name, plan, code_wanted in (("right", stating(), 0), ("wrong", stating(wrong), 3)):
        server.reset(plan)
        other.reset(stating(wrong if code_wanted == 0 else lambda d: hashlib.sha256(d).hexdigest()))
        code, _, err = call("convert", "--force", SMALL, str(out), endpoint=f"{server.url}/elsewhere")
        check(f"the digest of the redirect counts: {name}", code == code_wanted and other.requests, code, err)


def all_of_it():
    with tempfile.TemporaryDirectory() as folder:
        conversions(folder)
    with tempfile.TemporaryDirectory() as folder:
        mismatches(folder)
        redirects(folder)
    verification()


run(f"{server.url}{base}/small.safetensors", (all_of_it, ))
