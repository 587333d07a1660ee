#!/usr/bin/env python3
"""check_view.py HEFT [PAGE]: `heft view`: who may ask, what is answered, when it ends.

Requests are those of http.client and of raw sockets. With the folder of the page (PAGE, as `./dev
web --build` makes it) and chromium, a browser opens a model and a comparison. TAP on stdout."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import webdriver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "remote"))
import loopback  # noqa: E402
import tap  # noqa: E402

WAIT = 30  # seconds


def safetensors(path, tensors):
    """Write tensors {name: [floats]}."""
    header, data = {}, b""
    for name, values in tensors.items():
        more = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)],
                        "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def shards(folder):
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for i, name in enumerate(names):
        safetensors(folder / name, {f"t{i}": [float(i)] * 8})
    index = {"metadata": {}, "weight_map": {f"t{i}": name for i, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return ["model.safetensors.index.json", *names]


def page(folder):
    folder.mkdir()
    for name, text in {"index.html": "<p>page", "inspector.js": "1;", "sw.js": "2;",
                       "notes.txt": "no"}.items():
        (folder / name).write_text(text)
    return folder


@contextlib.contextmanager
def files_server(folder):
    """Serve the files of a folder on the loopback interface; yield the address."""
    server = subprocess.Popen([sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
                              cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        yield "http://127.0.0.1:" + re.search(r"port (\d+)", server.stdout.readline())[1]
    finally:
        server.kill()
        server.wait()


class Served:
    """A running command; a context manager."""

    def __init__(self, heft, page_folder, *args, **env):
        env = {**os.environ, "HEFT_PAGE": str(page_folder), **env}
        self.process = subprocess.Popen([heft, "view", *map(str, args)], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        self.address = json.loads(line)["address"] if line.startswith("{") else line.strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=[0-9a-f]{64})", self.address)
        if not found:
            raise RuntimeError(f"no address: {line!r} {self.process.communicate()[1]!r}")
        self.port, self.start = int(found[1]), found[2]
        self.cookie = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, path, method="GET", cookie=True, **headers):
        """Return (status, headers, body)."""
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        if cookie and self.cookie:
            headers["Cookie"] = self.cookie
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        c.request(method, path, headers=headers)
        r = c.getresponse()
        body = r.read()
        c.close()
        return r.status, r.headers, body

    def raw(self, text):
        """Send bytes; return the status line."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT) as s:
            s.sendall(text)
            return s.recv(4096).split(b"\r\n", 1)[0]

    def enter(self):
        status, headers, _ = self.ask(self.start, cookie=False)
        if status != 303:
            raise RuntimeError(f"the token is answered with {status}")
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return headers

    def alive(self):
        """Hold the request of a page; return its connection."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        s.sendall(f"GET /alive HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                  f"Cookie: {self.cookie}\r\n\r\n".encode())
        if not s.recv(4096).startswith(b"HTTP/1.1 200 "):
            raise RuntimeError("/alive is refused")
        return s


class Checks:
    def __init__(self, heft, folder):
        self.heft, self.folder = heft, folder
        self.page = page(folder / "page")
        self.model = safetensors(folder / "m/a model#1%.safetensors", {"w": [1.0, 2.0, 3.0]})
        (folder / "m/secret.txt").write_text("secret")
        (folder / "outside.txt").write_text("secret")

    def view(self, *args, **env):
        return Served(self.heft, self.page, *args, **env)

    def run(self, *args, **env):
        return subprocess.run([self.heft, "view", *map(str, args)], check=False, text=True,
                              capture_output=True, timeout=WAIT,
                              env={**os.environ, "HEFT_PAGE": str(self.page), **env})

    def the_token_is_good_for_one_request(self):
        with self.view(self.model) as v:
            wrong = v.ask("/?token=" + "0" * 64)[0]
            head = v.ask(v.start, method="HEAD")[0]
            headers = v.enter()
            again, _, text = v.ask(v.start, cookie=False)
            kinds = {k.strip() for k in headers["Set-Cookie"].split(";")[1:]}
            return (wrong, head, again) == (403, 403, 403) and b"used already" in text and \
                kinds == {"Path=/", "HttpOnly", "SameSite=Strict"} and \
                headers["Set-Cookie"].startswith(f"heft-{v.port}=") and \
                headers["Location"] == "/#open=/model/a%2520model%25231%2525.safetensors"

    def a_link_on_another_page_leads_to_the_page(self):
        with self.view(self.model, self.model) as v:
            status, headers, body = v.ask(v.start, Sec_Fetch_Site="cross-site")
            start = "/#open=/model/a%2520model%25231%2525.safetensors" \
                "&b=/b/a%2520model%25231%2525.safetensors"
            return status == 200 and "Location" not in headers and \
                f'content="0; url={start}"'.encode() in body and "Set-Cookie" in headers

    def without_the_cookie_nothing_is_answered(self):
        with self.view(self.model) as v:
            v.enter()
            good = v.cookie
            paths = ("/", "/inspector.js", "/model/a%20model%231%25.safetensors", "/alive", "/x")
            alone = [v.ask(p, cookie=False)[0] for p in paths]
            v.cookie = good[:-1] + ("0" if good[-1] != "0" else "1")
            wrong = [v.ask(p)[0] for p in paths]
            v.cookie = good.replace(f"-{v.port}=", "-1=")
            other = [v.ask(p)[0] for p in paths]
            return set(alone + wrong + other) == {403}

    def the_header_host_is_the_servers_own(self):
        with self.view(self.model) as v:
            v.enter()
            own = [f"127.0.0.1:{v.port}", f"localhost:{v.port}"]
            others = ["127.0.0.1", f"evil.example:{v.port}", f"127.0.0.1:{v.port + 1}",
                      f"127.0.0.1:{v.port}.evil.example", f"[::1]:{v.port}", "",
                      f"127.0.0.1:{v.port},evil"]
            cookie = f"Cookie: {v.cookie}\r\n"
            ok = all(v.ask("/", Host=h)[0] == 200 for h in own)
            bad = all(v.ask("/", Host=h)[0] == 403 for h in others)
            twice = v.raw(f"GET / HTTP/1.1\r\nHost: evil\r\nHost: {own[0]}\r\n"
                          f"{cookie}\r\n".encode())
            none = v.raw(f"GET / HTTP/1.0\r\n{cookie}\r\n".encode())
            return ok and bad and b" 200 " not in twice and b" 200 " not in none

    def a_wrong_host_does_not_use_up_the_token(self):
        with self.view(self.model) as v:
            evil = v.ask(v.start, Host=f"evil.example:{v.port}")[0]
            origin = v.ask(v.start, Origin="https://evil.example")[0]
            return (evil, origin) == (403, 403) and bool(v.enter())

    def the_header_origin_is_missing_or_the_servers_own(self):
        with self.view(self.model) as v:
            v.enter()
            own = v.ask("/", Origin=f"http://127.0.0.1:{v.port}")[0]
            others = ["null", "https://evil.example", f"https://127.0.0.1:{v.port}",
                      f"http://localhost:{v.port}", "http://127.0.0.1", ""]
            return own == 200 and all(v.ask("/", Origin=o)[0] == 403 for o in others)

    def only_get_and_head_are_answered(self):
        with self.view(self.model) as v:
            v.enter()
            answers = [v.ask("/", method=m) for m in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH")]
            return all(s == 405 and h["Allow"] == "GET, HEAD" for s, h, _ in answers)

    def answers_are_kept_from_other_pages(self):
        with self.view(self.model) as v:
            v.enter()
            for path in ("/", "/model/a%20model%231%25.safetensors", "/nothing"):
                h = v.ask(path)[1]
                if h["Cross-Origin-Resource-Policy"] != "same-origin" or \
                        h["Cache-Control"] != "no-store" or "Access-Control-Allow-Origin" in h or \
                        "frame-ancestors 'none'" not in h["Content-Security-Policy"] or \
                        h["X-Content-Type-Options"] != "nosniff":
                    return False
            return True

    def files_come_whole_and_in_ranges(self):
        data = self.model.read_bytes()
        n, path = len(data), "/model/a%20model%231%25.safetensors"
        with self.view(self.model) as v:
            v.enter()
            status, headers, body = v.ask(path)
            tag = headers["ETag"]
            ok = status == 200 and body == data and headers["Accept-Ranges"] == "bytes"
            for text, first, last in ((f"bytes=0-{n - 1}", 0, n), ("bytes=3-9", 3, 10),
                                      ("bytes=5-", 5, n), ("bytes=-4", n - 4, n),
                                      (f"bytes=-{n + 9}", 0, n), ("bytes=2-999999999999999", 2, n),
                                      ("bytes=1-99999999999999999999999999", 1, n)):
                status, headers, body = v.ask(path, Range=text)
                ok = ok and status == 206 and body == data[first:last] and \
                    headers["Content-Range"] == f"bytes {first}-{last - 1}/{n}"
            for text in (f"bytes={n}-", "bytes=-0", "bytes=99999999999999999999999999-"):
                status, headers, _ = v.ask(path, Range=text)
                ok = ok and status == 416 and headers["Content-Range"] == f"bytes */{n}"
            for text in ("bytes=0-1,3-4", "bytes=9-3", "bytes=-", "lines=0-1", "bytes=a-b"):
                ok = ok and v.ask(path, Range=text)[::2] == (200, data)
            ok = ok and v.ask(path, Range="bytes=0-1", If_Range=tag)[0] == 206
            return ok and v.ask(path, Range="bytes=0-1", If_Range='"x"')[::2] == (200, data)

    def head_has_the_size_and_no_bytes(self):
        with self.view(self.model) as v:
            v.enter()
            status, headers, body = v.ask("/model/a%20model%231%25.safetensors", method="HEAD")
            return status == 200 and body == b"" and \
                headers["Content-Length"] == str(self.model.stat().st_size)

    def a_changed_file_has_another_tag(self):
        path = safetensors(self.folder / "changing.safetensors", {"w": [1.0]})
        with self.view(path) as v:
            v.enter()
            tag = v.ask("/model/changing.safetensors")[1]["ETag"]
            os.utime(path, ns=(1, 1))
            other = v.ask("/model/changing.safetensors")[1]["ETag"]
            path.unlink()
            return tag != other and v.ask("/model/changing.safetensors")[0] == 404

    def names_outside_of_the_list_are_not_found(self):
        with self.view(self.model) as v:
            v.enter()
            paths = ["/model/secret.txt", "/model/", "/model", "/b/x", "/model/../outside.txt",
                     "/model/%2e%2e/outside.txt", "/model/..%2foutside.txt", "/etc/passwd",
                     "//etc/passwd", "/model//etc/passwd", "/model/%2fetc%2fpasswd", "/sw.js",
                     "/notes.txt", "/../page/notes.txt", "/inspector.js%00", "/inspector.js%00.txt",
                     "/%00", "/inspector.js%", "/inspector.js%2", "/inspector.js%zz", "/index.html",
                     "/model/a+model%231%25.safetensors", "/far/model/x", "/INSPECTOR.JS"]
            wrong = [p for p in paths if v.ask(p)[0] != 404]
            # The library ends a path at a zero byte; what is left is looked up in the list, too.
            raw = v.raw(f"GET /notes.txt\0/inspector.js HTTP/1.1\r\nHost: 127.0.0.1:{v.port}\r\n"
                        f"Cookie: {v.cookie}\r\n\r\n".encode())
            other = v.raw(f"GET http://evil/inspector.js HTTP/1.1\r\nHost: 127.0.0.1:{v.port}\r\n"
                          f"Cookie: {v.cookie}\r\n\r\n".encode())
            if wrong or b" 200 " in raw + other:
                print("#", wrong, raw, other)
            return not wrong and b" 200 " not in raw and b" 200 " not in other

    def the_page_is_served(self):
        with self.view(self.model) as v:
            v.enter()
            start, script = v.ask("/"), v.ask("/inspector.js")
            return start[0] == 200 and start[2] == b"<p>page" and \
                start[1]["Content-Type"].startswith("text/html") and script[2] == b"1;" and \
                script[1]["Content-Type"].startswith("text/javascript")

    def shards_of_an_index_and_of_a_folder_are_served(self):
        names = shards(self.folder / "set")
        for model in (self.folder / "set", self.folder / "set" / names[0]):
            with self.view(model) as v:
                start = v.enter()["Location"]
                for name in names:
                    if v.ask(f"/model/{name}")[::2] != \
                            (200, (self.folder / "set" / name).read_bytes()):
                        return False
                if start != f"/#open=/model/{names[0]}":
                    return False
        return True

    def settings_beside_a_model_are_served_and_nothing_else(self):
        names, folder = shards(self.folder / "set2"), self.folder / "set2"
        text = b'{"max_position_embeddings": 4096}'
        others = ["tokenizer.json", "generation_config.json", "README.md"]
        for name in others:
            (folder / name).write_text("secret")
        (folder / "config.json").write_bytes(text)
        for model in (folder, folder / names[0], folder / names[1]):
            with self.view(model) as v:
                early = v.ask("/model/config.json", cookie=False)[0]
                v.enter()
                status, headers, body = v.ask("/model/config.json")
                evil = v.ask("/model/config.json", Origin="https://evil.example")[0]
                host = v.ask("/model/config.json", Host=f"evil.example:{v.port}")[0]
                if (early, status, body, evil, host) != (403, 200, text, 403, 403) or \
                        headers["Content-Type"] != "application/json" or \
                        any(v.ask(f"/model/{name}")[0] != 404 for name in others):
                    return False
        (folder / "config.json").unlink()
        with self.view(folder) as v:
            v.enter()
            return v.ask("/model/config.json")[0] == 404

    def settings_outside_of_the_folder_are_refused(self):
        folder = self.folder / "links"
        safetensors(folder / "model.safetensors", {"w": [1.0]})
        (folder / "config.json").symlink_to("../outside.txt")
        p = self.run(folder)
        return p.returncode in (3, 4) and "config.json" in p.stderr and not p.stdout

    def settings_that_are_too_long_are_said(self):
        folder = self.folder / "long"
        safetensors(folder / "model.safetensors", {"w": [1.0]})
        (folder / "config.json").write_text(" " * (1 << 20) + "{}")
        with self.view(folder) as v:
            v.enter()
            got = v.ask("/model/config.json")[0]
            v.process.send_signal(signal.SIGINT)
            return got == 404 and "more than 1 MiB" in v.process.communicate()[1]

    def a_missing_shard_is_said_and_not_found(self):
        names = shards(self.folder / "part")
        (self.folder / "part" / names[2]).unlink()
        with self.view(self.folder / "part") as v:
            v.enter()
            got = v.ask(f"/model/{names[1]}")[0], v.ask(f"/model/{names[2]}")[0]
            v.process.send_signal(signal.SIGINT)
            return got == (200, 404) and "the model is incomplete" in v.process.communicate()[1]

    def two_models_have_folders_of_their_own(self):
        b = safetensors(self.folder / "b.safetensors", {"w": [4.0]})
        with self.view(self.model, b) as v:
            start = v.enter()["Location"]
            return start.endswith("&b=/b/b.safetensors") and \
                v.ask("/b/b.safetensors")[2] == b.read_bytes() and \
                v.ask("/model/b.safetensors")[0] == 404

    def standard_input_is_a_model(self):
        with open(self.model, "rb") as f:
            v = subprocess.Popen([self.heft, "view", "-"], stdin=f, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "HEFT_PAGE": str(self.page)})
            address = v.stdout.readline()
            v.kill()
            return address.startswith("http://127.0.0.1:") or v.communicate()[1]

    def an_address_is_served_from_its_server(self):
        shutil.copy(self.model, self.model.parent / "far.safetensors")
        with files_server(self.model.parent) as root:
            with self.view(f"{root}/far.safetensors") as v:
                data = self.model.read_bytes()
                start = v.enter()["Location"]
                return start == "/#open=/far/model/far.safetensors" and \
                    v.ask("/far/model/far.safetensors")[::2] == (200, data) and \
                    v.ask("/far/model/far.safetensors", Range="bytes=7-11")[::2] == \
                    (206, data[7:12]) and v.ask("/model/far.safetensors")[0] == 404

    def a_server_that_has_failed_is_asked_again(self):
        path, data = "/far/model/m.safetensors", loopback.safetensors({"w": bytes(1 << 20)})
        server = loopback.Server({"/m.safetensors": data})
        with self.view(f"{server.url}/m.safetensors") as v:
            v.enter()
            tag = v.ask(path, Range="bytes=0-9")[1]["ETag"]
            server.plan = lambda *_: {"status": 429, "headers": {"Retry-After": "1000"}}
            status, headers, _ = v.ask(path, Range="bytes=900000-900009", If_Range=tag)
            server.plan = lambda *_: None
            again = v.ask(path, Range="bytes=900000-900009")
            other = v.ask(path, Range="bytes=900000-900009", If_Range=tag)
            return status == 502 and "1000 seconds" in headers["X-Error-Message"] and \
                again[::2] == (206, data[900000:900010]) and other[::2] == (200, data)

    def a_repository_is_served_at_the_commit_that_was_opened(self):
        name, commits = "model.safetensors", ("a" * 40, "b" * 40)
        old, new = (loopback.safetensors({"w": bytes([n]) * 1000}) for n in (1, 2))
        lists = [json.dumps({"sha": c, "siblings": [{"rfilename": name}]}).encode()
                 for c in commits]
        main, listing = f"/o/n/resolve/main/{name}", "/api/models/o/n/revision/main"
        server = loopback.Server({main: old, listing: lists[0],
                                  f"/o/n/resolve/{commits[0]}/{name}": old})
        with self.view("hf://o/n", HF_ENDPOINT=server.url) as v:
            v.enter()
            server.files.update({main: new, listing: lists[1]})
            return v.ask(f"/far/model/{name}")[::2] == (200, old)

    def the_names_that_the_user_gave_are_served(self):
        shutil.copy(self.model, self.model.parent / "far.safetensors")
        with files_server(self.model.parent) as root, \
                self.view(self.model, f"{root}/far.safetensors?signature=secret") as v:
            early = v.ask("/names.json", cookie=False)[0]
            v.enter()
            names = {"model": str(self.model), "b": f"{root}/far.safetensors?..."}
            return early == 403 and json.loads(v.ask("/names.json")[2]) == names

    def settings_beside_an_address_are_served_and_nothing_else(self):
        folder = self.folder / "far"
        names, text = shards(folder), b'{"max_position_embeddings": 4096}'
        (folder / "README.md").write_text("secret")
        with files_server(folder) as root:
            for model, present in ((names[0], False), (names[0], True), (names[1] + "?x=1", True)):
                if present:
                    (folder / "config.json").write_bytes(text)
                with self.view(f"{root}/{model}") as v:
                    early = v.ask("/far/model/config.json", cookie=False)[0]
                    v.enter()
                    status, headers, body = v.ask("/far/model/config.json")
                    wanted = (200, text) if present else (404, body)
                    if (early, status, body) != (403, *wanted) or \
                            v.ask("/far/model/README.md")[0] != 404 or \
                            present and headers["Content-Type"] != "application/json":
                        return False
            (folder / "config.json").write_text(" " * (1 << 20) + "{}")
            with self.view(f"{root}/{names[0]}") as v:
                v.enter()
                got = v.ask("/far/model/config.json")[0]
                v.process.send_signal(signal.SIGINT)
                return got == 404 and "more than 1 MiB" in v.process.communicate()[1]

    def it_ends_when_the_page_is_closed(self):
        with self.view(self.model) as v:
            v.enter()
            held = [v.alive(), v.alive()]
            held[0].close()
            time.sleep(7)
            runs = v.process.poll() is None
            held[1].close()
            return runs and v.process.wait(WAIT) == 0

    def a_page_that_is_loaded_again_keeps_it(self):
        with self.view(self.model) as v:
            v.enter()
            v.alive().close()
            time.sleep(2)
            again = v.alive()
            time.sleep(7)
            runs = v.process.poll() is None
            again.close()
            return runs and v.process.wait(WAIT) == 0

    def ctrl_c_ends_it_at_once(self):
        with self.view(self.model) as v:
            v.enter()
            held = v.alive()
            v.process.send_signal(signal.SIGINT)
            code = v.process.wait(WAIT)
            held.close()
            return code == -signal.SIGINT

    def only_loopback_listens(self):
        with self.view(self.model) as v:
            table = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
            rows = [line.split() for line in table]
            at = [r[1].split(":")[0] for r in rows
                  if int(r[1].split(":")[1], 16) == v.port and r[3] == "0A"]
            return at == ["0100007F"] or at == ["7F000001"]

    def a_port_in_use_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            p = self.run(self.model, "--port", s.getsockname()[1])
            return p.returncode == 4 and "cannot be used" in p.stderr and not p.stdout

    def a_chosen_port_is_used(self):
        port = webdriver.free_port()
        with self.view(self.model, "--port", port) as v:
            return v.port == port

    def json_has_the_address(self):
        with self.view(self.model, "--json") as v:
            return bool(v.enter())

    def wrong_ports_are_refused(self):
        return all(self.run(self.model, "--port", p).returncode == 2
                   for p in ("0", "65536", "-1", "x"))

    def without_the_page_it_says_what_to_install(self):
        empty = self.folder / "empty"
        empty.mkdir()
        p = self.run(self.model, HEFT_PAGE=str(empty))
        return p.returncode == 5 and "HEFT_PAGE" in p.stderr and not p.stdout

    def without_the_library_it_says_what_to_install(self):
        fake = self.folder / "fake"
        fake.mkdir()
        (fake / "libmicrohttpd.so.12").write_bytes(b"no library")
        known = os.environ.get("LD_LIBRARY_PATH", "")
        p = self.run(self.model, LD_LIBRARY_PATH=f"{fake}:{known}")
        return p.returncode == 5 and "install the package libmicrohttpd12" in p.stderr

    def a_file_that_is_no_model_is_refused(self):
        p = self.run(self.folder / "outside.txt")
        q = self.run(self.folder / "nothing")
        return p.returncode == 3 and q.returncode == 4 and not p.stdout + q.stdout

    def a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            p = subprocess.run([self.heft, "view", self.model], check=False, stdout=full,
                               stderr=subprocess.PIPE, timeout=WAIT,
                               env={**os.environ, "HEFT_PAGE": str(self.page)})
            return p.returncode == 4

    def odd_requests_do_not_end_it(self):
        with self.view(self.model) as v:
            v.enter()
            for text in (b"\0" * 4096, b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n",
                         b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
                         b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                         b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"):
                try:
                    with socket.create_connection(("127.0.0.1", v.port), timeout=WAIT) as s:
                        s.sendall(text)
                        s.shutdown(socket.SHUT_WR)
                        s.recv(100)
                except OSError:
                    pass  # reset by the server
            return v.ask("/")[0] == 200


class InBrowser:
    """The real page, in Chromium."""

    def __init__(self, heft, page_folder, folder):
        self.heft, self.page, self.folder = heft, page_folder, folder

    def a_browser_shows_both_models_and_ends_the_command(self):
        a = safetensors(self.folder / "shown/a #1.safetensors", {"w": [1.0, 2.0], "same": [5.0]})
        b = safetensors(self.folder / "shown/b.safetensors", {"w": [1.0, 3.0], "same": [5.0]})
        with Served(self.heft, self.page, a, b) as v:
            with tempfile.TemporaryDirectory() as profile, webdriver.Browser(profile) as browser:
                browser.run(f"location.href = {json.dumps(v.address)}")
                end = time.monotonic() + WAIT
                shown = ""
                while time.monotonic() < end and "w" not in shown:
                    shown = browser.run(
                        "return document.title + '|' + location.hash + '|' +"
                        " [...document.querySelectorAll('#panel-compare td, #panel-compare"
                        " [role=gridcell]')].map((x) => x.textContent).join('|')").split("|", 2)[2]
                    time.sleep(0.3)
                title = browser.run("return document.title")
                found = "a #1.safetensors" in title and "w" in shown
                if not found:
                    print("#", title, shown, browser.run("return document.body.innerText")[:1000])
            return found and v.process.wait(WAIT) == 0

    def a_browser_shows_what_the_settings_beside_the_model_say(self):
        folder = self.folder / "stated"
        safetensors(folder / "model.safetensors", {"w": [1.0, 2.0]})
        (folder / "config.json").write_text('{"max_position_embeddings": 54321}')
        with files_server(folder) as root:
            return self.shows(folder, "54,321") and \
                self.shows(f"{root}/model.safetensors", "54,321")

    def shows(self, model, text):
        with Served(self.heft, self.page, model) as v:
            with tempfile.TemporaryDirectory() as profile, webdriver.Browser(profile) as browser:
                browser.run(f"location.href = {json.dumps(v.address)}")
                end, shown = time.monotonic() + WAIT, ""
                while time.monotonic() < end and text not in shown:
                    shown = browser.run("return document.body?.innerText ?? \"\"")
                    time.sleep(0.3)
            return text in shown


def main(heft, page_folder=None, *only):
    results = []
    with tempfile.TemporaryDirectory() as folder:
        checks = Checks(heft, pathlib.Path(folder))
        with socket.create_server(("127.0.0.1", 0)) as taken:
            refused = checks.run(checks.model, "--port", taken.getsockname()[1])
        if "microhttpd" in refused.stderr:
            print("1..0 # SKIP this build has no libmicrohttpd")
            return 0
        all_checks = [getattr(checks, n) for n in vars(Checks) if "_" in n.strip("_")]
        if page_folder and pathlib.Path(page_folder, "served.js").exists() and \
                not webdriver.lacks():
            shown = InBrowser(heft, page_folder, pathlib.Path(folder))
            all_checks += [shown.a_browser_shows_both_models_and_ends_the_command,
                           shown.a_browser_shows_what_the_settings_beside_the_model_say]
        for check in all_checks if not only else [c for c in all_checks if c.__name__ in only]:
            try:
                complaints = [] if check() is True else ["it is not so"]
            except (OSError, RuntimeError, subprocess.SubprocessError,
                    http.client.HTTPException) as e:
                complaints = [f"{type(e).__name__}: {e}"]
            results.append((check.__name__.replace("_", " "), complaints))
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
