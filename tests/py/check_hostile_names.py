#!/usr/bin/env python3
"""check_hostile_names.py HEFT: names that move the cursor, hide or reverse text, or are paths.

Each name is tried in each place that a file or the command line offers, with each command, on a
pipe and on a terminal: no harmful character may be printed raw. With --messages json each line on
stderr must be a JSON object. Shards whose names leave the folder
must not be opened. TAP on stdout."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "tools"), str(HERE.parent / "cli")]
import tap  # noqa: E402
import terminal  # noqa: E402

from gen_gguf import File, Layout  # noqa: E402
from gen_shards import pack  # noqa: E402

NAMES = {
    "escape sequences": "a\x1b[31mred\x1b[2J\x1b]0;title\x07b",
    "C1 controls": "a\x9b31mb\x90c\x85d",
    "newlines": "a\nheft: ok\r\n\x0b\x0cb", "tabs and backspaces": "a\tb\b\b\bc\x7f",
    "bidi": "a\u202eb\u2066c\u2069d\u200fe\u061cf\ufeffg", "lines": "a\u2028b\u2029c",
    "percent": "%s%n%d%%%*c", "backslashes": "\\n\\x1b[31m", "long": "n" * 5000,
    "paths": "../../../etc/passwd", "an absolute path": "/etc/passwd", "an option": "--help",
    "invalid UTF-8": b"a\xff\xfe\xc0\x80\xed\xa0\x80b".decode(errors="surrogateescape"),
}
HARMFUL = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
PROGRESS = re.compile("\r\x1b\\[K|\r[^\r\n]*$")
COMMANDS = [["ls"], ["ls", "-l"], ["ls", "--raw"], ["ls", "--json"], ["info"], ["info", "-v"],
            ["info", "--json"], ["ids"], ["hash"], ["hash", "--json"], ["stats"], ["verify"],
            ["verify", "--json"]]
SECRET = pack({"secret": ("U8", [6], b"hidden")})


def printed(words, on_terminal):
    """Return what a command prints to stdout and stderr."""
    raw = [w.encode(errors="surrogateescape") for w in words]
    if on_terminal:
        return terminal.run(raw)[0]
    p = subprocess.run(raw, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, check=False)
    return p.stdout.decode(errors="backslashreplace") if is_utf8(p.stdout) else "\0"


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def complaints(words):
    for on_terminal in (False, True):
        text = printed(words, on_terminal)
        found = HARMFUL.search(PROGRESS.sub("", text) if on_terminal else text)
        if found:
            place = "a terminal" if on_terminal else "a pipe"
            yield f"{words[1:-1]} prints {found[0]!r} on {place}: {text[:300]!r}"


def bad_messages(words):
    """Yield the lines on stderr that are not messages in JSON."""
    raw = [w.encode(errors="surrogateescape") for w in [*words, "--messages=json"]]
    p = subprocess.run(raw, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       stdin=subprocess.DEVNULL, check=False)
    for line in p.stderr.splitlines():
        text = line.decode(errors="replace")
        try:
            is_message = "kind" in json.loads(line) and not HARMFUL.search(text)
        except ValueError:
            is_message = False
        if not is_message:
            yield f"{words[1:-1]} prints as a message {text[:300]!r}"


# ---- places of names ----

def in_gguf(folder, name):
    """Return a file with the name as a tensor, a key and a value of metadata."""
    raw = name.encode(errors="surrogateescape")
    layout = Layout(3, False)
    f = File([], meta=())
    f.entries = [layout.text(raw) + layout.pack("I", 8) + layout.text(raw)]
    f.infos = [layout.text(raw[:60]) + layout.pack("I", 1) + layout.length(1) +
               layout.pack("IQ", 0, 0)]
    data = f.header()
    path = folder / "in.gguf"
    path.write_bytes(data + bytes(-len(data) % 32) + bytes(32))
    return path


def in_files(folder, name):
    """Yield command lines in which the name is part of a file or of the command line."""
    plain = folder / "plain.safetensors"
    plain.write_bytes(pack({"w": ("F32", [1], bytes(4))}))
    gguf = in_gguf(folder, name)
    for command in COMMANDS:
        yield [*command, str(gguf)]
    yield ["convert", "-f", "-v", str(gguf), str(folder / "out.safetensors")]
    yield ["convert", "-f", str(gguf), str(folder / "out.npz")]
    yield ["diff", str(gguf), str(plain)]
    yield ["diff", "--json", str(plain), str(gguf)]
    for words in (["ls", name], ["cat", str(plain), name],
                  ["show", str(plain), "--part", name, "w"],
                  ["ls", str(plain), name], ["convert", "--to", name, str(plain), "x"],
                  ["convert", "--cast", name, str(plain), "x.npz"], [name],
                  ["convert", str(plain), f"{folder}/none/{name}"],
                  ["edit", "--unset", name, str(plain)], ["ls", "--key", name, str(plain)],
                  ["split", str(plain), str(folder / "parts"), "--name", name]):
        yield words
    if len(name) < 200 and "/" not in name:
        other = folder / (name + ".safetensors")
        other.write_bytes(plain.read_bytes()[:-1])
        for command in ("ls", "verify", "info"):
            yield [command, str(other)]
    index = folder / "index.safetensors.index.json"
    shard = name.encode(errors="replace").decode()
    index.write_text(json.dumps({"weight_map": {"w": shard, shard: "plain.safetensors"}}))
    yield ["ls", str(index)]
    yield ["verify", str(index)]


def name_is_escaped(name):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        found = []
        for words in in_files(folder, name):
            found += complaints([HEFT, *words])
            found += bad_messages([HEFT, *words])
        return found[:5]


# ---- paths ----

def shards_stay_inside():
    """Yield complaints about shards that lie outside of the folder and are read."""
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        model = root / "model"
        (model / "sub").mkdir(parents=True)
        (model / "in.safetensors").write_bytes(pack({"w": ("U8", [1], b"x")}))
        for path in (root / "out.safetensors", model / "sub" / "in_sub.safetensors",
                     model / "inside.safetensors"):
            path.write_bytes(SECRET)
        os.symlink("../out.safetensors", model / "link.safetensors")
        os.symlink("..", model / "up")
        os.mkfifo(model / "pipe.safetensors")
        for shard in ("../out.safetensors", str(root / "out.safetensors"), "sub/in_sub.safetensors",
                      "./../out.safetensors", "up/out.safetensors", "link.safetensors",
                      "..\\out.safetensors", "pipe.safetensors", "..", ".", "",
                      "../out.safetensors\0", "sub/../../out.safetensors", "/etc/passwd",
                      "inside.safetensors"):
            index = model / "model.safetensors.index.json"
            index.write_text(json.dumps({"weight_map": {"w": "in.safetensors", "secret": shard}}))
            for path in (model, index):
                p = subprocess.run([HEFT, "cat", path, "secret"], capture_output=True,
                                   timeout=600, check=False)
                was_read = not p.returncode or b"hidden" in p.stdout
                if was_read != (shard == "inside.safetensors"):
                    yield f"{shard!r} was read: {was_read}"


def main():
    os.environ.update(NO_COLOR="1", TERM="xterm")
    results = [(f"names with {k}", name_is_escaped(v)) for k, v in NAMES.items()]
    return tap.report(results + [("shards stay in their folder", list(shards_stay_inside()))])


HEFT = sys.argv[1]
sys.exit(main())
