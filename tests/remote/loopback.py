"""loopback.py - what the checks of files on servers share: a server of the loopback interface that
answers by plan, a call of Heft without the settings of the user, and results as TAP."""
import http.server
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

HEFT = str(pathlib.Path(sys.argv[1]).resolve())


def safetensors(tensors, note="", dtype="U8"):
    """A file of tensors with one dimension: {name: bytes}."""
    size = {"U8": 1, "F32": 4}[dtype]
    head, at = {"__metadata__": {"note": note}} if note else {}, 0
    for name, data in tensors.items():
        head[name] = {"dtype": dtype, "shape": [len(data) // size], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(tensors.values())


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        s = self.server
        with s.lock:
            is_late = s.accepted[self.client_address] != s.resets
            if not is_late:
                s.requests.append((self.path, dict(self.headers)))
            number = len(s.requests)
        if is_late:
            self.answer(503, {}, b"late")
            return
        path = self.path.split("?")[0]
        if path.startswith("/elsewhere/"):
            headers = (s.plan(number, self) or {}).get("headers", {})
            self.answer(302, {"Location": f"{s.other}{path[10:]}", **headers}, b"")
            return
        data = s.files.get(path)
        if data is None:
            self.answer(404, {}, b"no")
            return
        plan = s.plan(number, self) or {}
        if "status" in plan:
            self.answer(plan["status"], plan.get("headers", {}), plan.get("body", b"busy"))
            return
        data = plan.get("data", data)
        etag = plan.get("etag", '"one"')
        headers = {**({"ETag": etag} if etag else {}), **plan.get("headers", {})}
        wanted = self.headers.get("Range")
        if not wanted or plan.get("whole"):
            self.answer(200, headers, data, plan)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last), len(data) - 1)
        if first >= len(data):
            self.answer(416, {"Content-Range": f"bytes */{len(data)}"}, b"")
            return
        shift = plan.get("shift", 0)
        headers["Content-Range"] = plan.get("range", f"bytes {first + shift}-{last + shift}/{len(data)}")
        with s.lock:
            s.bytes += last + 1 - first
        self.answer(206, headers, data[first:last + 1] + plan.get("after", b""), plan)

    def trickle(self, data):
        """Send a byte at a time until the client has enough of it."""
        try:
            for byte in data:
                self.wfile.write(bytes((byte,)))
                time.sleep(0.05)
        except OSError:
            pass
        self.close_connection = True

    def answer(self, status, headers, body, plan={}):
        if plan.get("trickle") == "headers":
            self.trickle(b"HTTP/1.1 206 Partial Content\r\n" + b"X-More: a\r\n" * 100000)
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + plan.get("more", 0)))
        self.end_headers()
        cut = plan.get("cut")
        if plan.get("trickle") == "body":
            self.trickle(body)
            return
        try:
            self.wfile.write(body if cut is None else body[:cut])
        except OSError:
            pass
        if cut is not None:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.lock = files, threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.accepted, self.resets = {}, 0  # how often it was reset when it accepted a connection
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.reset()

    def reset(self, plan=None):
        """Forget all requests, and answer by the plan. A command that has ended may have sent
        requests that it did not wait for: connections made so far do not count."""
        with socket.create_connection(self.server_address) as last:
            while last.getsockname() not in self.accepted:
                time.sleep(0.001)
        with self.lock:
            self.resets += 1
            self.requests, self.bytes, self.plan = [], 0, plan or (lambda number, handler: None)

    def process_request(self, request, client_address):
        with self.lock:
            self.accepted[client_address] = self.resets
        super().process_request(request, client_address)

    def handle_error(self, *args):
        pass


def heft(*args, **env):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("HF_", "AWS_", "CURL_", "SSL_")) and "proxy" not in k.lower()}
    done = subprocess.run([HEFT, *args], capture_output=True, env={**clean, "HOME": "/nonexistent", **env},
                          stdin=subprocess.DEVNULL, timeout=600)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


failures = number = 0


def check(name, ok, *shown):
    global failures, number
    number += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {name}")
    for s in () if ok else shown:
        print(f"# {s}")


def skip(name, why):
    global number
    number += 1
    print(f"ok {number} - {name} # SKIP {why}")


def run(url, parts):
    """Call the parts, unless libcurl is missing for a URL; end the program."""
    if heft("ls", url)[0] == 5:
        print("1..0 # SKIP libcurl is not installed")
        sys.exit(0)
    for part in parts:
        part()
    print(f"1..{number}")
    sys.exit(failures > 0)
