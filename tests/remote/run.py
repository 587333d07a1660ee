"""run.py HEFT OLDER_CURL: files on servers of the loopback interface. TAP on stdout.

The server of loopback.py answers by plan: whole files, ranges, errors, other versions, redirects.
nginx, where it is installed, is the second implementation of a server."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "py"))
from onnx_proto import content, number, tensor  # noqa: E402
from loopback import Server, check, heft, run, safetensors, skip

OLDER_CURL = sys.argv[2]
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")


def onnx_model(location, size):
    entry = content(13, content(1, "location") + content(2, location))
    return number(1, 8) + content(7, content(5, tensor("w", 2, (size,), entry + number(14, 1))))


big = os.urandom(9 << 20)
small = safetensors({"a": b"abcd", "b": bytes(range(16))})
tensors = {"first": os.urandom(3 << 20), "second": big, "third": b"123"}
large = safetensors(tensors)
long_index = safetensors({f"layer.{i:06}.weight": b"x" for i in range(5000)} | {"tail": big})
index = json.dumps({"metadata": {"total_size": 8}, "weight_map": {
    "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
shards = {"model.safetensors.index.json": index,
          "model-00001-of-00002.safetensors": safetensors({"a": b"1234"}),
          "model-00002-of-00002.safetensors": safetensors({"b": b"5678"})}
files = {"/small.safetensors": small, "/large.safetensors": large, "/long.safetensors": long_index,
         "/empty": b"", "/api/models/o/n/revision/main": json.dumps(
             {"sha": "0" * 40, "siblings": [{"rfilename": n} for n in [*shards, "README.md"]]}).encode(),
         **{f"/sharded/{n}": d for n, d in shards.items()},
         **{f"/o/n/resolve/{'0' * 40}/{n}": d for n, d in shards.items()},
         "/bucket/a key.safetensors": small}
server, other = Server(files), Server(files)
server.other = other.url


def reading():
    server.reset()
    code, out, err = heft("cat", f"{server.url}/small.safetensors", "a")
    check("a tensor is read", (code, out) == (0, b"abcd"), code, err)
    check("a small file is one request", len(server.requests) == 1, server.requests)
    server.reset()
    code, out, err = heft("ls", f"{server.url}/long.safetensors")
    check("a long index is two requests", code == 0 and len(server.requests) == 2, code, err,
          [r[1].get("Range") for r in server.requests])
    server.reset()
    code, out, err = heft("cat", f"{server.url}/large.safetensors", "third")
    check("only the range of a tensor is read", (code, out) == (0, b"123") and server.bytes < 400 << 10,
          code, err, server.bytes)
    code, out, err = heft("cat", f"{server.url}/large.safetensors", "second")
    check("a tensor of several blocks is whole", code == 0 and out == big, code, err)
    code, out, err = heft("ls", f"{server.url}/empty")
    check("an empty file has no format", code == 3 and "is empty" in err, code, err)
    server.reset()
    code, out, err = heft("ls", f"{server.url}/sharded/model.safetensors.index.json")
    check("shards are found next to the index", code == 0 and b"b" in out and len(server.requests) == 3,
          code, err, len(server.requests))
    code, out, err = heft("ls", f"{server.url}/missing.safetensors")
    check("a missing file", code == 4 and "HTTP status 404" in err, code, err)


def external_data():
    """Read and move data of an ONNX model that are in a folder beside it on the server."""
    data = os.urandom(2 << 20)
    server.files["/onnx/m.onnx"] = onnx_model("weights/a b.bin", len(data))
    server.files["/onnx/weights/a%20b.bin"] = data
    code, out, err = heft("cat", f"{server.url}/onnx/m.onnx", "w")
    check("external data in a folder on a server", (code, out) == (0, data), code, err)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "m.onnx"
        code, out, err = heft("convert", "--inline", f"{server.url}/onnx/m.onnx", path)
        check("external data from a server, inline", code == 0, code, err)
        code, out, err = heft("cat", path, "w")
        check("the data are those of the server", (code, out) == (0, data), code, err)


def beyond_memory():
    """Read tensors larger than the 64 MiB that are kept: blocks are freed while others are requested."""
    wide = safetensors({"a": big, "wide": big * 11, "b": big})
    server.files["/wide.safetensors"] = wide
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "wide.safetensors")
        path.write_bytes(wide)
        for args in (["cat", "wide"], ["stats", "--raw"], ["convert", "-j", "3", "--to", "bpk"]):
            command, *options = args
            ends = ["-"] if command == "convert" else []
            results = []
            for source in (str(path), f"{server.url}/wide.safetensors"):
                server.reset()
                tail = [source, *options] if command == "cat" else [*options, source, *ends]
                results.append(heft(command, *tail))
            check(f"{command} of a tensor larger than the memory for blocks", results[0][:2] == results[1][:2] and
                  results[0][0] == 0 and (command == "stats" or server.bytes < 1.5 * len(wide)), results[0][2], results[1][0], results[1][2],
                  server.bytes)
    del server.files["/wide.safetensors"]
    server.reset()


def plans():
    def of(**plan):
        return lambda n, h: plan

    def at(first, plan):
        return lambda n, h: plan if n == first else None
    url = f"{server.url}/large.safetensors"
    for status in (429, 500, 503):
        server.reset(at(1, {"status": status, "headers": {"Retry-After": "0"}}))
        code, out, err = heft("cat", url, "third")
        check(f"status {status} is repeated", (code, out) == (0, b"123"), code, err)
    server.reset(of(status=503))
    code, out, err = heft("ls", url)
    check("repetitions are bounded", code == 4 and "503" in err and len(server.requests) == 5, code, err,
          len(server.requests))
    server.reset(at(1, {"status": 429, "headers": {"Retry-After": "1"}}))
    begin = time.monotonic()
    code, out, err = heft("ls", url)
    check("Retry-After is obeyed", code == 0 and time.monotonic() - begin >= 1, code, err)
    server.reset(lambda n, h: {"cut": 100000} if n in (2, 3) else None)
    code, out, err = heft("cat", url, "second")
    check("a truncated answer is continued", code == 0 and out == big, code, err)
    server.reset(of(cut=10))
    code, out, err = heft("ls", url)
    check("an answer that is always truncated is an error", code == 4, code, err)
    for name, plan, text in (("another ETag", {"etag": '"two"'}, "changed on the server"),
                             ("another range", {"shift": 1}, "another range"),
                             ("the whole file later", {"whole": True}, "changed on the server")):
        server.reset(lambda n, h, p=plan: p if n > 1 else None)
        code, out, err = heft("cat", url, "second")
        check(f"{name} is an error", code == 4 and text in err, code, err)
    server.reset(of(after=b"more"))
    code, out, err = heft("ls", url)
    check("an answer with more bytes than its range is an error", code == 4 and "more bytes than" in err, code, err)
    server.reset(lambda n, h: {"headers": {"Last-Modified": f"Mon, 01 Jan 2024 00:00:{n:02} GMT"}})
    code, out, err = heft("cat", url, "second")
    check("another Last-Modified is an error", code == 4 and "changed on the server" in err, code, err)
    server.reset(of(headers={"Content-Encoding": "gzip"}))
    code, out, err = heft("ls", url)
    check("a compressed answer is refused", code == 4 and "compressed" in err, code, err)
    server.reset(lambda n, h: {"status": 302, "headers": {"Location": h.path}})
    code, out, err = heft("ls", url)
    check("redirects are bounded", code == 4 and len(server.requests) == 6, code, err, len(server.requests))
    server.reset(of(whole=True))
    code, out, err = heft("cat", url, "second")
    check("a server without ranges is read whole, by one request",
          code == 0 and out == big and len(server.requests) == 1, code, err, len(server.requests))
    server.reset(lambda n, h: {"status": 401})
    code, out, err = heft("ls", url)
    check("a refusal is not repeated", code == 4 and len(server.requests) == 1 and "credentials" in err,
          code, err)
    server.reset()


def secrets():
    secret = "sesame"
    url = server.url.replace("//", f"//user:{secret}@") + f"/missing?X-Amz-Signature={secret}"
    code, out, err = heft("ls", url)
    check("messages do not show credentials", code == 4 and secret not in err + out.decode(), err)
    server.reset(), other.reset()
    server.files["/elsewhere/x"] = b""
    auth = {"HF_TOKEN": secret, "HF_ENDPOINT": f"{server.url}/elsewhere"}
    code, out, err = heft("ls", "hf://o/n/small.safetensors", **auth)
    leaked = [r for r in other.requests if secret in str(r)]
    sent = [r for r in server.requests if secret in str(r)]
    check("a redirect to another host does not get the token", other.requests and not leaked and sent,
          err, other.requests, server.requests)
    code, out, err = heft("ls", server.url + "/small.safetensors", HF_HUB_OFFLINE="1")
    check("HF_HUB_OFFLINE refuses", code == 4 and "HF_HUB_OFFLINE" in err, code, err)


def routes():
    """The address that a redirect led to is used again, until that server refuses it."""
    wide = safetensors({f"t{i}": big for i in range(4)})
    for n in "abc":
        path = f"/o/n/resolve/main/{n}.safetensors"
        server.files[f"/elsewhere{path}"] = server.files[path] = wide
    auth = {"HF_TOKEN": "sesame", "HF_ENDPOINT": f"{server.url}/elsewhere"}
    expired = []

    def once(number, handler):
        """Refuse one request after the first, as if a signed address had expired."""
        is_first = "bytes=0-" in handler.headers["Range"]
        if "/b." in handler.path and not is_first and not expired:
            expired.append(number)
            return {"status": 403}
        return None
    for name, path, plan, most in (("a redirect is followed once", "a", None, 1),
                                   ("an address that has expired is asked for again", "b", once, 3)):
        server.reset(), other.reset(plan)
        code, out, err = heft("cat", f"hf://o/n/{path}.safetensors", "t1", **auth)
        check(f"{name}: {len(server.requests)} requests", code == 0 and out == big and len(server.requests) <= most and
              len(other.requests) >= 3, code, err, server.requests, other.requests)
        check(f"{name}: only the first server gets the token", "sesame" not in str(other.requests) and
              all("sesame" in str(r) for r in server.requests), other.requests)
    url = "hf://o/n/c.safetensors"
    server.reset(), other.reset(lambda n, h: None if "bytes=0-" in h.headers["Range"] else {"status": 403})
    code, out, err = heft("cat", url, "t1", **auth)
    check("an address that is refused again and again is an error", code == 4 and "HTTP status 403" in err, code, err)
    for etag in ('W/"one"', ""):
        server.reset(), other.reset(lambda n, h: {"etag": etag, "headers": {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}})
        code, out, err = heft("cat", url, "t3", **auth)
        check(f"the first server is asked each time if the other states the version {etag!r}", code == 0 and out == big and
              len(server.requests) == len(other.requests), code, err, len(server.requests), len(other.requests))
    server.reset(), other.reset(lambda n, h: None if "bytes=0-" in h.headers["Range"] else {"etag": '"two"'})
    code, out, err = heft("cat", url, "t3", **auth)
    check("another version at the address is an error", code == 4 and "changed on the server" in err, code, err)
    server.reset(), other.reset()


def settings():
    """A setting with a line feed at its end is sent without; within the setting it is refused."""
    server.reset()
    for token in ("sesame\n", " sesame\r\n", "sesame\t"):
        code, out, err = heft("ls", "hf://o/n", HF_ENDPOINT=f"{server.url}/\n", HF_TOKEN=token)
        check(f"the token {token!r} is trimmed", code == 0 and
              all(r[1].get("Authorization") == "Bearer sesame" for r in server.requests), code, err, server.requests)
    server.reset()
    for name, url in ("HF_TOKEN", "hf://o/n"), ("AWS_SESSION_TOKEN", "s3://bucket/a"), ("AWS_REGION", "s3://bucket/a"):
        env = {"HF_ENDPOINT": server.url, "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "a",
               "AWS_SECRET_ACCESS_KEY": "b", name: "one\nX-Two: 2"}
        code, out, err = heft("ls", url, **env)
        check(f"{name} with two lines is refused", code and f"{name} has a" in err and not server.requests, code, err,
              server.requests)
    code, out, err = heft("ls", f"{server.url}/a/../small.safetensors")
    check("the path of an address is sent as it is", code == 4 and server.requests[-1][0] == "/a/../small.safetensors",
          code, err, server.requests)
    server.reset()


def meeting(names):
    """A plan that answers requests for these files only when all of them have arrived."""
    arrived = threading.Barrier(len(names))

    def plan(number, handler):
        if handler.path.rsplit("/", 1)[-1] in names:
            try:
                arrived.wait(60)
            except threading.BrokenBarrierError:
                return {"status": 404}
        return None
    return plan


def shard_heads():
    server.reset(meeting([n for n in shards if "-of-" in n]))
    code, out, err = heft("ls", f"{server.url}/sharded/model.safetensors.index.json")
    check("the heads of shards are requested at the same time", code == 0 and len(server.requests) == 3, code, err,
          server.requests)
    server.reset(lambda n, h: time.sleep(0.2))  # both would come meanwhile
    code, out, err = heft("ls", f"{server.url}/sharded/model.safetensors.index.json", HEFT_CONNECTIONS="1")
    with server.lock:
        used = sum(n == server.resets for n in server.accepted.values())
    check("HEFT_CONNECTIONS=1: one after the other", code == 0 and used == 1, code, used, err)
    server.reset(lambda n, h: {"status": 404} if "00001" in h.path else None)
    code, out, err = heft("ls", f"{server.url}/sharded/model.safetensors.index.json")
    check("a missing shard is named", code == 0 and "model-00001-of-00002.safetensors" in err, code, err)
    for status, expected in ((404, 1), (403, 4)):
        server.reset(lambda n, h: {"status": status} if "00001" in h.path else None)
        code, out, err = heft("verify", f"{server.url}/sharded/model.safetensors.index.json")
        check(f"a shard with status {status}", code == expected and "00001" in err + out.decode(), code, out, err)
    server.reset()


def gathering(count):
    """A plan that answers requests for other bytes than the first only when `count` of them have
    arrived, and the ranges that these ask for."""
    ranges, all_there = [], threading.Event()

    def plan(number, handler):
        first, last = map(int, handler.headers["Range"].removeprefix("bytes=").split("-"))
        if not first:
            return None
        ranges.append((first, last + 1))
        if len(ranges) >= count:
            all_there.set()
        return None if all_there.wait(60) else {"status": 404}
    return plan, ranges


def whole_tensors():
    """A command that needs all of a tensor uses all connections from the beginning, for requests
    of different lengths: those of one length would end, and wait for the next answers, together.
    No byte after the tensor is requested."""
    size, url = 40 << 20, f"{server.url}/forty.safetensors"
    head = json.dumps({n: {"dtype": "F32", "shape": [size >> 2], "data_offsets": [at, at + size]}
                       for n, at in (("w", 0), ("x", size))}).encode()
    begin = 8 + len(head)
    server.files["/forty.safetensors"] = len(head).to_bytes(8, "little") + head + bytes(2 * size)
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/o.safetensors"
        for count, command in ((8, ("cat", url, "w", "-o", f"{folder}/w")),
                               (8, ("convert", "--cast", "bf16", url, out)), (3, ("convert", "-f", url, out))):
            plan, ranges = gathering(count)
            server.reset(plan)
            code, _, err = heft(*command, HEFT_CONNECTIONS=str(count))
            check(f"{command[0]} of a tensor begins with {count} requests", code == 0, code, err, ranges)
            check(f"{command[0]}: {count} requests have different lengths",
                  len({end - at for at, end in ranges[:count]}) >= count - 1, ranges)
            last = begin + (size if command[0] == "cat" else 2 * size)
            check(f"{command[0]}: nothing after what is needed", max(end for _, end in ranges) == last, last, ranges)
    del server.files["/forty.safetensors"]
    server.reset()


def long_addresses():
    """An address has at most 8191 bytes, also that of a shard next to the file."""
    most, name = 8191, "model.safetensors.index.json"
    for more, expected in ((0, 4), (1, 5)):
        server.reset()
        code, out, err = heft("ls", f"{server.url}/".ljust(most + more, "x"))
        check(f"an address of {most + more} bytes", code == expected and ("too long" in err) == bool(more) and
              len(server.requests) == 1 - more, code, err[-300:], len(server.requests))
    with tempfile.TemporaryDirectory() as folder:  # longer than a path of the system may be
        long = f"{server.url}/small.safetensors?".ljust(5000, "x")
        for command in (("convert", long, f"{folder}/o.zt"), ("info", long)):
            code, out, err = heft(*command)
            check(f"{command[0]} takes a long address", code == 0, code, err[-300:])
    query = f"{server.url}/sharded/{name}?".ljust(most, "x")
    folder = "/".ljust(most - len(f"{server.url}/{name}"), "x")
    server.files[f"{folder}/{name}"] = index
    for about, url in (("query", query), ("folder", f"{server.url}{folder}/{name}")):
        server.reset()
        code, out, err = heft("ls", url)
        check(f"shards with a long {about} are not requested", "the address is too long" in err and
              len(server.requests) == 1, code, out, err[-300:], [r[0][-80:] for r in server.requests])
    del server.files[f"{folder}/{name}"]
    server.reset()


def loading():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "a.safetensors")
        path.write_bytes(small)
        code, out, err = heft("ls", str(path), LD_DEBUG="files")
        check("libcurl is not loaded for a local file", code == 0 and "libcurl" not in err, code, err[-500:])
        code, out, err = heft("ls", f"{server.url}/small.safetensors", LD_DEBUG="files")
        check("libcurl is loaded for a URL", code == 0 and ("libcurl" in err or "libheft" not in err), code)
        shutil.copy(OLDER_CURL, pathlib.Path(folder, "libcurl.so.4"))
        code, out, err = heft("ls", "--no-sandbox", f"{server.url}/small.safetensors", LD_LIBRARY_PATH=folder)
        check("an older libcurl is refused", code == 5 and "URLs need libcurl 7.85 or later" in err, code, err)
        pathlib.Path(folder, "libcurl.so.4").write_bytes(b"no library")
        code, out, err = heft("ls", "--no-sandbox", f"{server.url}/small.safetensors", LD_LIBRARY_PATH=folder)
        check("a missing libcurl is named", code == 5 and "install the package libcurl4" in err, code, err)


def hub():
    server.reset()
    code, out, err = heft("ls", "hf://o/n", HF_ENDPOINT=server.url, HF_TOKEN="t")
    check("a repository opens its main file", code == 0 and b"b" in out and len(server.requests) == 4, code, err,
          server.requests)
    check("the token is sent", all(r[1].get("Authorization") == "Bearer t" for r in server.requests))
    code, out, err = heft("ls", "hf://o/../n", HF_ENDPOINT=server.url)
    check("an invalid name is refused", code == 2 or code == 4, code, err)


def s3():
    server.reset()
    env = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
           "AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL": server.url}
    code, out, err = heft("cat", "s3://bucket/a%20key.safetensors", "a", **env)
    code, out, err = heft("ls", "s3://bucket/missing", **env)
    sent = server.requests[-1][1]
    check("requests to S3 are signed", "Credential=AKID/" in sent.get("Authorization", "") and
          "/eu-west-1/s3/aws4_request" in sent["Authorization"] and "secret" not in str(sent) and
          sent.get("X-Amz-Security-Token", sent.get("x-amz-security-token")) == "session", err, sent)


def nginx():
    if not NGINX:
        skip("nginx", "nginx is not installed")
        return
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        os.chmod(folder, 0o755)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        root = pathlib.Path(folder, "root")
        root.mkdir()
        for name in ("large", "small"):
            (root / f"{name}.safetensors").write_bytes(files[f"/{name}.safetensors"])
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem",
                        "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost"], cwd=folder, check=True, capture_output=True)
        temporary = "\n".join(f"{n}_temp_path {folder}/{n};" for n in
                              ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        pathlib.Path(folder, "conf").write_text(f"""
            daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
            events {{}} http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port} ssl http2;
            ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; root {root};
            location /whole/ {{ alias {root}/; max_ranges 0; }} }} }}""")
        child = subprocess.Popen([NGINX, "-c", f"{folder}/conf", "-e", f"{folder}/error.log"])
        try:
            for _ in range(200):
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.05)
            url = f"https://localhost:{port}"
            trusted = {"SSL_CERT_FILE": f"{folder}/cert.pem"}
            code, out, err = heft("cat", f"{url}/large.safetensors", "second", **trusted)
            check("nginx with TLS and HTTP/2", code == 0 and out == big, code, err)
            code, out, err = heft("cat", f"{url}/whole/large.safetensors", "second", **trusted)
            check("nginx without ranges", code == 0 and out == big, code, err)
            code, out, err = heft("ls", f"{url}/small.safetensors")
            check("a certificate of an unknown authority is refused", code == 4 and "certificate" in err, code, err)
        finally:
            child.terminate()
            child.wait()


run(f"{server.url}/small.safetensors", (reading, external_data, beyond_memory, shard_heads, whole_tensors,
                                      long_addresses, loading, plans, secrets, settings, routes, hub, s3, nginx))
