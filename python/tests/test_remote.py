"""Addresses of files on servers: a server of the loopback interface, with ranges."""
import http.server
import threading

import heft
import numpy
import pytest


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = self.server.files.get(self.path)
        if data is None:
            self.send_error(404)
            return
        first, last = (int(n) for n in self.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(data) - 1)
        self.server.sent += last + 1 - first
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", '"one"')
        self.end_headers()
        self.wfile.write(data[first:last + 1])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    arrays = {"a": numpy.arange(6, dtype="f4").reshape(2, 3), "large": numpy.ones(4 << 20, "u1")}
    heft.save(arrays, tmp_path / "model.safetensors")
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    s.files, s.sent = {"/model.safetensors": (tmp_path / "model.safetensors").read_bytes()}, 0
    s.url, s.arrays = f"http://127.0.0.1:{s.server_port}/model.safetensors", arrays
    threading.Thread(target=s.serve_forever, daemon=True).start()
    try:
        heft.open(s.url).close()
    except heft.UnsupportedError:
        pytest.skip("this build has no libcurl")
    s.sent = 0
    yield s
    s.shutdown()
    s.server_close()


def test_open_reads_only_what_is_asked_for(server):
    with heft.open(server.url) as f:
        assert set(f) == {"a", "large"}
        assert numpy.array_equal(f["a"].numpy(), server.arrays["a"])
    assert server.sent < 1 << 20


def test_load_reads_all(server):
    loaded = heft.load(server.url)
    assert all(numpy.array_equal(loaded[name], server.arrays[name]) for name in server.arrays)


def test_commands_read_addresses(server, tmp_path):
    heft.convert(server.url, tmp_path / "out.mag", resume=True)
    assert heft.diff(server.url, tmp_path / "out.mag").equal
    assert not [p for p in tmp_path.iterdir() if "heft-part" in p.name]


def test_offline_refuses(server, tmp_path, monkeypatch):
    with pytest.raises(heft.Error, match="--offline"):
        heft.info(server.url, offline=True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(heft.IOError, match="HF_HUB_OFFLINE"):
        heft.open(server.url)
    assert not server.sent


def test_missing_file(server):
    with pytest.raises(heft.IOError, match="does not exist"):
        heft.open(server.url + "x")
