"""check_failures.py HEFT: servers that are slow, that limit requests, that break connections or refuse.

Time does not decide: a slow server sends for hours, and a command that does not give up does not end."""
import http.server
import os
import pathlib
import tempfile
import threading
import time

from loopback import Handler, Server, check, heft, run, safetensors

MIB = 1 << 20
tensors = {f"layer.{i}": os.urandom(4 * MIB) for i in range(5)}
large, small = safetensors(tensors), safetensors({"a": b"abcd"})
server = Server({"/large.safetensors": large, "/small.safetensors": small, "/o/n/resolve/main/large.safetensors": large,
                 "/b/k.safetensors": small})
URL = f"{server.url}/large.safetensors"
S3 = {"AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
QUICK = {"HEFT_TIMEOUT": "1", "HEFT_SLOWEST": "1000"}


def slowness():
    for where in ("headers", "body"):
        for name, plan in (("from the beginning", lambda n, h: {"trickle": where}),
                           ("of a later answer", lambda n, h: {"trickle": where} if n > 1 else None),
                           ("of a file without ranges", lambda n, h: {"trickle": where, "whole": True})):
            server.reset(plan)
            code, out, err = heft("cat", URL, "layer.3", **QUICK)
            check(f"a server that sends a byte at a time: {where} {name}", code == 4 and "the server is too slow" in err and
                  "HEFT_SLOWEST" in err, code, err)
    server.reset(lambda n, h: {"trickle": "body"} if n == 1 else None)
    code, out, err = heft("cat", f"{server.url}/small.safetensors", "a", HEFT_TIMEOUT="1")
    check("a slow answer is requested again", (code, out) == (0, b"abcd") and len(server.requests) == 2, code, err)
    server.reset(lambda n, h: {"trickle": "body"})
    code, out, err = heft("cat", f"{server.url}/small.safetensors", "a", HEFT_TIMEOUT="1", HEFT_SLOWEST="1")
    check("HEFT_SLOWEST allows a slow server", (code, out) == (0, b"abcd") and len(server.requests) == 1, code, err)
    for name in ("HEFT_TIMEOUT", "HEFT_SLOWEST", "HEFT_CONNECTIONS"):
        for value in ("0", "-1", "1s", "x", "99999999999"):
            code, out, err = heft("ls", URL, **{name: value})
            check(f"{name}={value} is refused", code == 2 and f"{name} is not a number" in err, code, err)


class SlowStore(http.server.BaseHTTPRequestHandler):
    """A store that begins uploads, and takes a byte of a body at a time."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        self.close_connection = True
        try:
            while self.rfile.read(1):
                time.sleep(0.1)
        except OSError:
            pass

    def do_DELETE(self):
        self.send_response(204)
        self.end_headers()

    def do_GET(self):
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()


def uploads():
    store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowStore)
    store.daemon_threads = True
    threading.Thread(target=store.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "a.safetensors")
        source.write_bytes(large)
        code, out, err = heft("convert", str(source), "s3://b/k.mag", **{
            **S3, **QUICK, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.server_port}"})
        check("a server that takes a byte at a time", code == 4 and "the server is too slow" in err, code, err)
    store.shutdown()


def limits():
    """The server limits requests for a second."""
    for name, headers in (("Retry-After", {"Retry-After": "2"}), ("RateLimit", {"RateLimit": '"resolvers";r=0;t=2'}),
                          ("an earlier RateLimit", {"RateLimit": "limit=9, remaining=0, reset=2"}),
                          ("RateLimit-Reset", {"RateLimit-Reset": "2"})):
        times = []

        def plan(number, handler):
            times.append(time.monotonic())
            return {"status": 429, "headers": headers} if number == 2 else None
        server.reset(plan)
        code, out, err = heft("cat", URL, "layer.1")
        check(f"{name} is waited for, and said", code == 0 and out == tensors["layer.1"] and times[-1] - times[1] >= 2 and
              err.count("limits requests: waiting for 2 seconds") == 1, code, err, times)
        server.reset(plan)
        code, out, err = heft("ls", "-q", URL)
        check("-q does not say it", (code, err) == (0, ""), code, err)
    server.reset(lambda n, h: {"status": 429, "headers": {"RateLimit": '"r";r=0;t=4000'}})
    code, out, err = heft("ls", URL)
    check("a wait of an hour is an error", code == 4 and "allows no requests for 4000 seconds" in err and
          len(server.requests) == 1, code, err, len(server.requests))


def progress():
    for cut in (3 * MIB, 100 << 10):
        server.reset(lambda n, h: {"cut": cut} if n > 1 else None)
        code, out, err = heft("cat", URL, "layer.2")
        check(f"connections that break after {cut} bytes", code == 0 and out == tensors["layer.2"], code, err,
              len(server.requests))
    server.reset(lambda n, h: {"cut": 1000} if n > 1 else None)
    code, out, err = heft("cat", URL, "layer.2")
    check("connections that break at once are not tried for ever", code == 4 and "server" in err, code, err)


def refusals():
    """What the server says is shown."""
    hub = {"HF_ENDPOINT": server.url}
    for code_sent, headers, body, url, text in (
        (401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b"{}", "hf://o/typo",
         "the repository was not found: check its name"),
        (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Visit https://h/o/n to ask for access."}, b"{}", "hf://o/n",
         "the repository is gated: ask for access"),
        (404, {"X-Error-Code": "RevisionNotFound"}, b"", "hf://o/n@x", "the revision was not found"),
        (404, {"X-Error-Code": "EntryNotFound"}, b"", "hf://o/n/x.gguf", "the file does not exist in the repository"),
        (301, {"x-amz-bucket-region": "eu-west-1"}, b"<Error><Code>PermanentRedirect</Code></Error>", "s3://b/k",
         "set AWS_REGION=eu-west-1"),
        (403, {}, b"<Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>", "s3://b/k",
         "the server does not know AWS_ACCESS_KEY_ID; check the credentials (HTTP status 403, InvalidAccessKeyId: no)"),
        (404, {}, b"<Error><Code>NoSuchBucket</Code></Error>", "s3://b/k", "the bucket was not found"),
            (403, {}, b"<Error><Code>AccessDenied</Code></Error>", f"{server.url}/small.safetensors", "access is not allowed")):
        server.reset(lambda n, h: {"status": code_sent, "headers": headers, "body": body})
        server.files["/api/models/o/typo/revision/main"] = server.files["/api/models/o/n/revision/main"] = b"{}"
        server.files["/api/models/o/n/revision/x"] = server.files["/o/n/resolve/main/x.gguf"] = server.files["/b/k"] = b"{}"
        code, out, err = heft("ls", url, **hub, **S3)
        check(f"{url}, status {code_sent}", code == 4 and text in err and len(server.requests) == 1, code, err,
              server.requests)
    server.reset(lambda n, h: {"status": 403, "headers": {"X-Error-Code": "GatedRepo", "X-Error-Message": "a\x1b[2Jb"}})
    code, out, err = heft("ls", "hf://o/n", **hub)
    check("what the server says does not reach the terminal raw", code == 4 and "\x1b" not in err, code, err)


run(f"{server.url}/small.safetensors", (slowness, uploads, limits, progress, refusals))
