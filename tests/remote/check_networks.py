"""check_networks.py HEFT LIBHEFT: proxies, silent servers, redirects and answers that do not match the
request. TAP on stdout.

The options of the library are set by ctypes where the command has none."""
import ctypes
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from loopback import HEFT, Server, check, heft, run, safetensors, skip

LIBRARY = ctypes.CDLL(sys.argv[2])
large = safetensors({"first": os.urandom(3 << 20), "second": b"123"})
server = Server({"/a.safetensors": safetensors({"a": b"abcd"}), "/large.safetensors": large})


# ---- the library ------------------------------------------------------------------------------


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("os", ctypes.c_int32), ("offset", ctypes.c_uint64),
                ("message", ctypes.c_char * 240), ("rest", ctypes.c_uint64 * 4)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("spool_bytes", ctypes.c_uint64),
                ("cache_bytes", ctypes.c_uint64), ("connections", ctypes.c_uint32),
                ("timeout", ctypes.c_uint32), ("say", ctypes.c_void_p), ("ctx", ctypes.c_void_p),
                ("offline", ctypes.c_bool), ("reserved", ctypes.c_uint8 * 7)]


LIBRARY.heft_status_name.restype = ctypes.c_char_p
LIBRARY.heft_source_url.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p,
                                    ctypes.POINTER(Options), ctypes.POINTER(Error)]
LIBRARY.heft_url_interrupt.argtypes = [ctypes.c_bool]
LIBRARY.heft_source_close.argtypes = [ctypes.c_void_p]


def open_url(url, **options):
    """Return the name of the status and the message of heft_source_url()."""
    source, error = ctypes.c_void_p(), Error()
    opt = Options(size=ctypes.sizeof(Options), **options)
    status = LIBRARY.heft_source_url(ctypes.byref(source), url.encode(), ctypes.byref(opt),
                                     ctypes.byref(error))
    LIBRARY.heft_source_close(source)
    return LIBRARY.heft_status_name(status).decode(), error.message.decode()


# ---- servers ----------------------------------------------------------------------------------


def serve(handle):
    """Listen on the loopback interface, and handle every connection on a thread; return the
    port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def read_head(connection):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        got = connection.recv(1)
        if not got:
            return ""
        head += got
    return head.decode()


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for s in (source, target):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Proxy:
    """A proxy that forwards requests and opens tunnels (CONNECT) to a port, whatever host is
    named."""

    def __init__(self, target, refuses=False):
        self.heads, self.target, self.refuses = [], target, refuses
        self.url = f"http://127.0.0.1:{serve(self.handle)}"

    def handle(self, client):
        head = read_head(client)
        self.heads.append(head)
        if self.refuses:
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            client.close()
            return
        upstream = socket.create_connection(("127.0.0.1", self.target))
        if head.startswith("CONNECT "):
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            method, url, version = head.split("\r\n", 1)[0].split(" ")
            path = "/" + url.split("/", 3)[3]
            rest = head.split("\r\n", 1)[1].replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
            upstream.sendall(f"{method} {path} {version}\r\n{rest}".encode())
        threading.Thread(target=copy, args=(client, upstream), daemon=True).start()
        copy(upstream, client)


def tls_server(folder, answer):
    """Serve a fixed answer over TLS; return the port and the file of the certificate."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
                    "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")

    def handle(connection):
        try:
            with context.wrap_socket(connection, server_side=True) as s:
                read_head(s)
                s.sendall(answer)
        except OSError:
            pass
    return serve(handle), f"{folder}/cert.pem"


# ---- checks -----------------------------------------------------------------------------------


def proxies():
    path = "/a.safetensors"
    for variable in ("http_proxy", "ALL_PROXY"):
        proxy = Proxy(server.server_port)
        code, out, err = heft("cat", f"http://models.invalid{path}", "a", **{variable: proxy.url})
        check(f"{variable} names a proxy for http", (code, out) == (0, b"abcd") and len(proxy.heads) == 1 and
              proxy.heads[0].startswith(f"GET http://models.invalid{path} "), code, err, proxy.heads)
    proxy = Proxy(server.server_port)
    code, out, err = heft("cat", server.url + path, "a", http_proxy=proxy.url, no_proxy="127.0.0.1")
    check("no_proxy names a host without a proxy", (code, out) == (0, b"abcd") and not proxy.heads, code, err)
    proxy = Proxy(server.server_port, refuses=True)
    code, out, err = heft("ls", "https://models.invalid/a.safetensors", https_proxy=proxy.url)
    check("a proxy that refuses a tunnel is an error", code == 4 and proxy.heads and
          proxy.heads[0].startswith("CONNECT models.invalid:443 "), code, err, proxy.heads)


def tls():
    if not shutil.which("openssl"):
        skip("https", "openssl is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        data = server.files["/a.safetensors"]
        port, certificate = tls_server(folder, (
            f"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-{len(data) - 1}/{len(data)}\r\nETag: \"x\"\r\n"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n").encode() + data)
        proxy = Proxy(port)
        code, out, err = heft("cat", "https://localhost:1/a.safetensors", "a", https_proxy=proxy.url,
                              SSL_CERT_FILE=certificate)
        check("https_proxy is asked for a tunnel", (code, out) == (0, b"abcd") and
              [h.split("\r\n")[0] for h in proxy.heads] == ["CONNECT localhost:1 HTTP/1.1"], code, err, proxy.heads)
    with tempfile.TemporaryDirectory() as folder:
        server.reset()
        port, certificate = tls_server(folder, (
            f"HTTP/1.1 302 Found\r\nLocation: {server.url}/a.safetensors\r\nContent-Length: 0\r\n"
            "Connection: close\r\n\r\n").encode())
        code, out, err = heft("ls", f"https://localhost:{port}/a.safetensors", SSL_CERT_FILE=certificate)
        check("a redirect from https to http is refused", code == 4 and not server.requests, code, err,
              server.requests)
        check("the message names the address of the redirect, and what to do",
              f"redirects from https to {server.url}/a.safetensors" in err and "open that address" in err, err)


def silence():
    done = threading.Event()

    def accept_only(connection):
        with connection:
            done.wait(60)
    port = serve(accept_only)
    begin = time.monotonic()
    status, message = open_url(f"http://127.0.0.1:{port}/a", timeout=1)
    check("a server without an answer is an error after the timeout",
          status == "io" and "the server is too slow" in message, status, message)
    check("the request waits for the timeout", time.monotonic() - begin >= 1, message)
    done.set()


BUSY = {"status": 503, "headers": {"Retry-After": "60"}}


def interrupted_command(name, plan):
    """Interrupt a conversion while it waits for bytes; without the interruption it would wait for
    more than a minute."""
    server.reset(plan)
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([HEFT, "convert", f"{server.url}/large.safetensors", f"{folder}/out.mag"],
                                 stderr=subprocess.PIPE)
        while child.poll() is None and len(server.requests) < 2:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        err = child.communicate()[1].decode()
        check(f"SIGINT ends a command that waits for {name}",
              child.returncode == -signal.SIGINT and "interrupted; nothing written" in err and
              not os.listdir(folder) and time.monotonic() - begin < 30, child.returncode, err)


def interruptions():
    silence = threading.Event()
    interrupted_command("bytes", lambda n, h: silence.wait(120) and None if n > 1 else None)
    interrupted_command("the next attempt", lambda n, h: BUSY if n > 1 else None)
    server.reset(lambda n, h: BUSY)
    threading.Timer(0.2, LIBRARY.heft_url_interrupt, [True]).start()
    status, message = open_url(f"{server.url}/large.safetensors")
    check("heft_url_interrupt() ends a wait", status == "cancelled", status, message)
    server.reset()
    status, message = open_url(f"{server.url}/large.safetensors")
    check("later requests are cancelled, too", status == "cancelled" and not server.requests, status, message)
    LIBRARY.heft_url_interrupt(False)
    status, message = open_url(f"{server.url}/large.safetensors")
    check("heft_url_interrupt(false) allows requests again", status == "ok", status, message)
    silence.set()


def whole_files():
    server.reset(lambda n, h: {"whole": True})
    url = f"{server.url}/large.safetensors"
    status, message = open_url(url, spool_bytes=1 << 20)
    check("a whole file above spool_bytes is refused", status == "limit", status, message)
    status, message = open_url(url, spool_bytes=len(large))
    check("a whole file of spool_bytes is read", status == "ok", status, message)
    status, message = open_url(url, spool_bytes=len(large) - 1)
    check("a whole file of one byte more is refused", status == "limit", status, message)


def ranges():
    size = len(large)
    cases = [
        ("a range that is not a number", "bytes x-y/z"), ("a range without a unit", f"0-131071/{size}"),
        ("a range of another unit", f"pages 0-131071/{size}"), ("a range that ends before it begins", f"bytes 9-3/{size}"),
        ("a range beyond the file", "bytes 0-131071/1000"), ("a size of more than 64 bits", f"bytes 0-131071/{10**30}"),
        ("an empty range", "")]
    for name, text in cases:
        server.reset(lambda n, h, t=text: {"range": t})
        code, _, err = heft("ls", f"{server.url}/large.safetensors")
        check(f"{name} is an error", code == 4, code, err)
    server.reset(lambda n, h: {"status": 416, "headers": {"Content-Range": f"bytes */{size}"}})
    code, _, err = heft("ls", f"{server.url}/large.safetensors")
    check("status 416 for bytes that exist is an error", code == 4, code, err)
    server.reset(lambda n, h: {"status": 416})
    code, _, err = heft("ls", f"{server.url}/large.safetensors")
    check("status 416 without a size is an error", code == 4 and "416" in err, code, err)
    server.reset(lambda n, h: {"headers": {"Content-Encoding": "gzip"}} if n > 1 else None)
    code, _, err = heft("cat", f"{server.url}/large.safetensors", "first")
    check("a compressed range is refused", code == 4 and "compressed" in err, code, err)
    server.reset()


run(f"{server.url}/a.safetensors", (proxies, tls, silence, interruptions, whole_files, ranges))
