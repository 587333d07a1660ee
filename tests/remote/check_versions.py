"""check_versions.py HEFT: a file that changes between any two requests is never a mixture of versions.

The server has two versions of each file, of the same size, and sends the other one with every request.
Whatever the server states about the version, the command reads one version, or fails."""
import email.utils
import os
import pathlib
import struct
import tempfile
import time

from loopback import Server, check, heft, run, safetensors

MIB = 1 << 20
NAMES = [f"layer.{i}" for i in range(6)]


def model(letter, size=2 * MIB):
    return safetensors({n: letter * size for n in NAMES})


def long_index(letter):
    return safetensors({f"model.layers.{letter.decode()}.{i:06}.weight": letter for i in range(4000)})


def stream(letter):
    """The simple stream of EMBD, whose headers are between the data."""
    text = b"EMBD" + struct.pack("<II", 1, 6)
    for i in range(6):
        text += struct.pack("<I", 2) + letter + b"%d" % i + struct.pack("<II", 1, 1 << 18) + letter * MIB
    return text + struct.pack("<I", 0)


VERSIONS = {"/model.safetensors": model, "/index.safetensors": long_index, "/stream.embd": stream}
versions = {path: (make(b"a"), make(b"b")) for path, make in VERSIONS.items()}
server = Server({path: both[0] for path, both in versions.items()})
other = Server(server.files)
server.other = other.url
OLD = "Mon, 01 Jan 2024 00:00:00 GMT"


def now():
    return email.utils.formatdate(time.time(), usegmt=True)


STATED = {  # name: ETag and other headers of both versions
    "nothing": ("", lambda: {}),
    "the same weak ETag": ('W/"one"', lambda: {}),
    "the same old time": ("", lambda: {"Last-Modified": OLD}),
    "the same weak ETag and time": ('W/"one"', lambda: {"Last-Modified": OLD}),
    "the present time": ("", lambda: {"Last-Modified": now()}),
    "a time without a Date": ("", lambda: {"Last-Modified": "soon"}),
}


def swapping(etag, headers, which=lambda number: number % 2):
    def plan(number, handler):
        path = handler.path.removeprefix("/elsewhere")
        data = versions[path][which(number)]
        return {"data": data, "etag": etag, "headers": headers()}
    return plan


def outcomes(folder, path, command):
    """The output of a command for each version."""
    found = []
    for data in versions[path]:
        local = pathlib.Path(folder, path[1:])
        local.write_bytes(data)
        found.append(call(folder, command, str(local)))
    return found


def call(folder, command, source):
    out = pathlib.Path(folder, "out.npz" if "embd" in source else "out.mag")
    args = [str(out) if a == "OUT" else source if a == "IN" else a for a in command]
    code, text, err = heft(*args)
    return code, text.replace(source.encode(), b"") + (out.read_bytes() if code == 0 and "OUT" in command else b""), err


COMMANDS = {"/model.safetensors": (["cat", "IN", "layer.5"], ["hash", "IN"], ["ls", "--raw", "IN"],
                                   ["verify", "--quick", "IN"], ["convert", "--force", "IN", "OUT"],
                                   ["convert", "-j", "4", "--force", "IN", "OUT"], ["stats", "--raw", "IN"]),
            "/index.safetensors": (["ls", "--raw", "IN"], ["hash", "IN"]),
            "/stream.embd": (["ls", "--raw", "IN"], ["convert", "--force", "IN", "OUT"])}


def mixtures():
    with tempfile.TemporaryDirectory() as folder:
        for path, commands in COMMANDS.items():
            for command in commands:
                right = [r[:2] for r in outcomes(folder, path, command)]
                for name, (etag, headers) in STATED.items():
                    for via, first in ("", server), ("/elsewhere", server):
                        server.reset(swapping(etag, headers)), other.reset(swapping(etag, headers))
                        code, out, err = call(folder, command, f"{first.url}{via}{path}")
                        check(f"{' '.join(command)} of {via}{path}, {name} stated: one version", code == 0 and (code, out) in right,
                              code, err, [r[1].get("Range") for r in server.requests])


def strong():
    """Versions that are stated are compared: each request has another one."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["convert", "--force", "IN", "OUT"]
        server.reset(lambda n, h: {"data": versions[h.path][n % 2], "etag": f'"{n % 2}"'})
        code, out, err = call(folder, command, f"{server.url}/model.safetensors")
        check("a strong ETag that changes is an error", code == 4 and "changed on the server" in err, code, err)
        server.reset()
        code, out, err = call(folder, command, f"{server.url}/model.safetensors")
        check("a strong ETag allows ranges", code == 0 and all("Range" in r[1] for r in server.requests), code, err,
              server.requests)


def lost_connections():
    """The second answer must begin with the bytes of the first: here they differ after 3 MiB."""
    size = 2 * MIB
    first = model(b"a")
    for name, data, whole in (("the same version", first, True), ("another version", first[:3 * MIB] + b"x" + first[3 * MIB + 1:], False)):
        server.reset(lambda n, h: {"data": first if n < 3 else data, "etag": "", "cut": 4 * MIB if n == 2 else None})
        code, out, err = heft("cat", f"{server.url}/model.safetensors", NAMES[5])
        check(f"a connection is lost, and {name} follows", (code, out) == (0, b"a" * size) if whole else
              code == 4 and "changed on the server" in err, code, err, len(out))
    server.reset(lambda n, h: {"data": first, "etag": "", "cut": 4 * MIB if n > 1 else None})
    code, out, err = heft("cat", f"{server.url}/model.safetensors", NAMES[5])
    check("connections that break always are an error", code == 4, code, err)


def costs():
    """An index at the beginning is read without the rest of the file."""
    wide = safetensors({f"t{i}": bytes(16 * MIB) for i in range(5)})
    with tempfile.TemporaryDirectory() as folder:
        server.files["/wide.safetensors"] = wide
        server.reset(lambda n, h: {"etag": "", "headers": {"Last-Modified": OLD}})
        code, out, err = heft("cat", f"{server.url}/wide.safetensors", "t4")
        check("the old time of a large file allows ranges", code == 0 and len(out) == 16 * MIB and server.bytes < 24 * MIB and
              all("Range" in r[1] for r in server.requests), code, err, server.bytes)
        server.reset(lambda n, h: {"etag": "", "headers": {"Last-Modified": now()}})
        code, out, err = heft("ls", f"{server.url}/wide.safetensors")
        check("the present time does not", code == 0 and "Range" not in server.requests[-1][1] and
              "states no version of the file" in err, code, err, server.requests)
        server.reset(lambda n, h: {"etag": 'W/"x"'})
        code, out, err = heft("convert", "--resume", f"{server.url}/wide.safetensors", str(pathlib.Path(folder, "o.mag")))
        check("nothing is kept of a file without a version", code == 0 and "nothing is kept" in err and
              os.listdir(folder) == ["o.mag"], code, err, os.listdir(folder))


run(f"{server.url}/model.safetensors", (mixtures, strong, lost_connections, costs))
