"""check_writing.py HEFT [--sanitizer]: objects of S3 as targets, on a server that checks signatures.
--sanitizer: bounds of memory do not hold, because HEFT keeps freed memory."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import s3_server
from loopback import HEFT, check, heft, run, safetensors

server = s3_server.S3Server()
ENV = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET,
       "AWS_SESSION_TOKEN": s3_server.SESSION, "AWS_REGION": s3_server.REGION,
       "AWS_ENDPOINT_URL": server.url}
model = safetensors({f"layer.{i}": os.urandom(3 << 20) for i in range(12)})
server.objects["/bucket/a model.safetensors"] = model


def convert(*args, **more):
    return heft("convert", *args, **ENV, **more)


def kinds():
    return [m for m, _ in server.requests]


def writing():
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.safetensors")
        source.write_bytes(model)
        written = pathlib.Path(folder, "written.safetensors")
        convert(str(source), str(written))
        server.reset()
        code, out, err = convert(str(source), "s3://bucket/new +%.safetensors")
        stored = server.objects.get("/bucket/new +%.safetensors")
        check("a file is written by parts", code == 0 and stored == written.read_bytes() and kinds().count("PUT") == 5 and
              not server.uploads and not server.refusals, code, err, kinds(), server.refusals, stored and len(stored))
        local = pathlib.Path(folder, "b.bpk")
        convert(str(source), str(local))
        server.reset()
        code, out, err = convert("s3://bucket/a model.safetensors", "s3://bucket/copy.bpk", "-j", "4")
        check("an object is converted to another", code == 0 and
              server.objects.get("/bucket/copy.bpk") == local.read_bytes() and not server.refusals, code, err,
              server.refusals)
        server.reset()
        code, out, err = convert(str(source), "s3://bucket/copy.bpk")
        check("an object is not replaced", code != 0 and "already exists" in err and not server.uploads and
              "POST" not in kinds(), code, err, kinds())
        code, out, err = convert("--force", str(source), "s3://bucket/copy.bpk")
        check("--force replaces an object", code == 0, code, err)
        code, out, err = convert(str(source), "https://127.0.0.1:1/copy.bpk")
        check("only objects of S3 can be written", code == 5 and "s3://BUCKET/KEY" in err, code, err)


def lost_completion(source):
    def lose(method, query):
        first = method == "POST" and "uploadId" in query and not lost
        if first:
            lost.append(1)
        return {"lost": first}

    def undo(method, query):
        if method == "POST" and "uploadId" in query and lost:
            server.objects["/bucket/lost.mag"] = b"other"
            server.etags.pop("/bucket/lost.mag")
        return lose(method, query)
    for force in ((), ("--force",)):
        lost = []
        server.reset(lose)
        code, out, err = convert(*force, source, "s3://bucket/lost.mag")
        check(f"a completion whose answer is lost is a success {force}", code == 0 and lost and not server.uploads and
              len([m for m in kinds() if m == "POST"]) == 3, code, err, kinds())
    lost = []
    server.reset(undo)
    code, out, err = convert("--force", source, "s3://bucket/lost.mag")
    check("an object of somebody else is not taken for ours", code == 4 and lost, code, err, kinds())


def failures():
    tries = []

    def once(method, query):
        if method == "PUT" and query.get("partNumber") == "2" and not tries:
            tries.append(1)
            return {"status": 503}
        return None

    def always(which, **plan):
        return lambda method, query: plan if which(method, query) else None
    source = "s3://bucket/a model.safetensors"
    server.reset(once)
    code, out, err = convert("--force", source, "s3://bucket/again.mag")
    check("a part is sent again after status 503", code == 0 and kinds().count("PUT") >= 6, code, err, kinds())
    for name, plan in (
        ("a part is refused", always(lambda m, q: q.get("partNumber") == "3", status=400)),
        ("the completion is refused", always(lambda m, q: m == "POST" and "uploadId" in q, status=400)),
        ("the completion fails with status 200",
         always(lambda m, q: m == "POST" and "uploadId" in q, status=200, text="<Error/>"))):
        server.reset(plan)
        code, out, err = convert(source, "s3://bucket/failed.mag")
        # The server may see cancelled parts, of the target and of the source, late.
        others = [kind for kind in kinds() if kind not in ("PUT", "GET")]
        check(f"{name}: nothing remains", code == 4 and "/bucket/failed.mag" not in server.objects and
              not server.uploads and others[-1] == "DELETE", code, err, kinds())
    server.reset(always(lambda m, q: "uploads" in q, status=200, text="<Error/>"))
    code, out, err = convert(source, "s3://bucket/failed.mag")
    check("an upload without an id is refused", code == 4 and "has begun no multipart upload" in err and
          "PUT" not in kinds(), code, err, kinds())
    server.reset(lambda m, q: server.objects.setdefault("/bucket/failed.mag", b"other") and None
                 if m == "PUT" else None)
    code, out, err = convert(source, "s3://bucket/failed.mag")
    check("an object that appears meanwhile is kept", code != 0 and "already exists" in err and
          server.objects["/bucket/failed.mag"] == b"other" and not server.uploads, code, err, kinds())
    lost_completion(source)
    server.reset()
    code, out, err = heft("convert", source, "s3://bucket/x.mag", **{**ENV, "AWS_SECRET_ACCESS_KEY": "wrong"})
    check("a wrong key is refused", code == 4 and "credentials" in err and server.refusals, code, err)


def keys():
    """Every key names the object of this key: the decoy is where other programs would look."""
    server.reset()
    server.objects["/bucket/c"] = safetensors({"decoy": b"1"})
    for key in ("a/../c", "a/./c", "./c", "../c", "a/b/../../c", "a//c", "/c", "%2e%2e/c", "a/%2E%2E/c", "a?b#c+d e", "é/😀 c", "c."):
        server.objects[f"/bucket/{key}"] = safetensors({"right": b"1234"})
        code, out, err = heft("ls", "--raw", f"s3://bucket/{key}", **ENV)
        check(f"the object {key!r} is read", code == 0 and out.startswith(b"right\t") and not server.refusals, code, out, err,
              server.requests, server.refusals)
        code, out, err = convert(f"s3://bucket/{key}", f"s3://bucket/{key}.mag")
        check(f"the object {key!r} is written", code == 0 and f"/bucket/{key}.mag" in server.objects and
              not server.refusals, code, err, server.requests[-1:], server.refusals)
    folder = "a?b#c/../d"
    server.objects[f"/bucket/{folder}/model.safetensors.index.json"] = json.dumps(
        {"weight_map": {"w": "model-00001-of-00001.safetensors"}}).encode()
    server.objects[f"/bucket/{folder}/model-00001-of-00001.safetensors"] = safetensors({"w": b"1"})
    code, out, err = heft("ls", "--raw", f"s3://bucket/{folder}/model.safetensors.index.json", **ENV)
    check("shards are in the folder of the key", code == 0 and out.startswith(b"w\t"), code, out, err, server.requests)
    code, out, err = heft("ls", "s3://bucket/no?key", **ENV)
    check("messages name the whole key", code == 4 and "s3://bucket/no?key:" in err, code, err)
    server.objects.pop("/bucket/c")
    server.reset()


def limits():
    server.reset()
    with tempfile.TemporaryDirectory() as folder:
        huge = pathlib.Path(folder, "huge.safetensors")
        length = 5 << 40  # and the header
        head = json.dumps({"w": {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}}).encode()
        huge.write_bytes(len(head).to_bytes(8, "little") + head)
        try:
            os.truncate(huge, 8 + len(head) + length)
        except OSError:
            print("# the file system has no files of 5 TiB")
        else:
            code, out, err = convert(str(huge), "s3://bucket/huge.safetensors")
            check("an object of more than 5 TiB is refused", code == 5 and "at most 5497558138880 bytes" in err, code, err)
        small = pathlib.Path(folder, "small.safetensors")
        small.write_bytes(safetensors({"w": b"1234"}))
        for key in ("k" * 9000, "k%" * 2700):
            code, out, err = convert(str(small), f"s3://bucket/{key}.mag")
            check(f"a key of {len(key)} bytes is refused", code == 5 and "too long" in err, code, err[-300:])
    check("nothing is written", "PUT" not in kinds() and not server.uploads, kinds())


def interruption():
    """Interrupt a conversion whose parts are refused for a while, before the last attempt."""
    server.reset(lambda method, query: {"status": 503} if method == "PUT" else None)
    child = subprocess.Popen([HEFT, "convert", "s3://bucket/a model.safetensors", "s3://bucket/stopped.mag"],
                             stderr=subprocess.PIPE, env={**os.environ, **ENV})
    while child.poll() is None and "PUT" not in kinds():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    err = child.communicate()[1].decode()
    check("an interruption ends the attempts, and nothing remains", child.returncode == -signal.SIGINT and
          "interrupted; nothing written" in err and not server.uploads and "DELETE" in kinds(),
          child.returncode, err, kinds())


def peak(*args):
    """Return the exit status and the largest memory of a command in bytes, as seen while it runs."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "AWS_"))}
    child = subprocess.Popen([HEFT, *args], env={**clean, **ENV}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    most = 0
    while child.poll() is None:
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        most = max([most, *(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.01)
    return child.returncode, most


def memory():
    """Downloaded blocks and parts share 64 MiB; each thread may have two parts more."""
    threads, part = 2, 8 << 20
    piece = os.urandom(16 << 20)
    server.objects["/bucket/much.safetensors"] = safetensors({f"t{i}": piece for i in range(24)})
    server.reset()
    base = 16 << 20  # the command with libcurl and OpenSSL
    for name, target in (("to S3", ["--force", "s3://bucket/much.bpk"]), ("to stdout", ["--to", "burnpack", "-"])):
        code, most = peak("convert", "-j", str(threads), "s3://bucket/much.safetensors", *target)
        bound = base + (64 << 20) + 2 * threads * part
        check(f"the memory of a conversion {name} is bounded", code == 0 and 0 < most <= bound, code, most >> 20, bound >> 20)
    del server.objects["/bucket/much.safetensors"]


run(server.url + "/x", (writing, keys, failures, limits, interruption, *([] if "--sanitizer" in sys.argv else [memory])))
