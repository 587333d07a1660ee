#!/usr/bin/env python3
"""check_hub.py HEFT: models of the Hugging Face cache by name, in caches made here.

TAP on stdout."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gen_shards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

MAIN, OTHER, NEAR = "a" * 40, "b0" + "b" * 38, "b1" + "c" * 38
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME")


def tensor(name):
    return gen_shards.pack({name: ("U8", [1], b"x")})


def add_file(cache, repository, commit, name, data):
    """Store a file as the Hugging Face library does: a link to a blob."""
    root = cache / ("models--" + repository.replace("/", "--"))
    blob = root / "blobs" / hashlib.sha256(data).hexdigest()
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(data)
    path = root / "snapshots" / commit / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(blob, path.parent))


def add_ref(cache, repository, ref, content):
    path = cache / ("models--" + repository.replace("/", "--")) / "refs" / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def make_cache(cache):
    add_file(cache, "own/net", MAIN, "model.safetensors", tensor("main"))
    add_file(cache, "own/net", MAIN, "sub/x.safetensors", tensor("below"))
    add_file(cache, "own/net", OTHER, "model.safetensors", tensor("other"))
    add_file(cache, "own/net", NEAR, "model.safetensors", tensor("near"))
    for ref, content in (("main", MAIN), ("v1", OTHER + "\n"), ("gone", "d" * 40),
                         ("up", "../.."), ("deep", "../snapshots/" + MAIN), ("empty", ""),
                         ("dots", ".."), ("long", "e" * 4000)):
        add_ref(cache, "own/net", ref, content)
    add_file(cache, "gpt2", MAIN, "model.safetensors", tensor("gpt2"))
    add_file(cache, "own/many", MAIN, "model.safetensors", tensor("m"))
    add_file(cache, "own/many", OTHER, "model.safetensors", tensor("m"))
    (cache / "models--own--net" / "refs" / "link").symlink_to("main")
    os.mkfifo(cache / "models--own--net" / "refs" / "pipe")
    (cache / "datasets--own--data").mkdir()


def heft(environment, *args):
    clean = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    p = subprocess.run([HEFT, *args], capture_output=True, check=False, timeout=60,
                       env={**clean, **environment})
    return p.returncode, p.stdout.decode(), p.stderr.decode()


# name, exit code, the tensors or a part of the message
NAMES = [
    ("hub:own/net", 0, ["main"]),
    ("hub:own/net@main", 0, ["main"]),
    ("hub:own/net/", 0, ["main"]),
    ("hub:own/net/model.safetensors", 0, ["main"]),
    ("hub:own/net/sub/x.safetensors", 0, ["below"]),
    ("hub:own/net/sub", 0, ["below"]),
    ("hub:own/net@v1", 0, ["other"]),
    ("hub:own/net@v1/model.safetensors", 0, ["other"]),
    ("hub:own/net@" + NEAR, 0, ["near"]),
    ("hub:own/net@" + NEAR[:4], 0, ["near"]),
    ("hub:gpt2", 0, ["gpt2"]),
    ("hub:gpt2@aaaa/model.safetensors", 0, ["gpt2"]),
    ("hub:gpt2@main", 4, "no revision 'main'"),
    ("hub:gpt2/model.safetensors", 0, ["gpt2"]),
    ("hub:own/net@" + NEAR[:3], 4, "no revision 'b1c'"),
    ("hub:own/net@bbbb", 4, "no revision"),
    ("hub:own/net@gone", 4, "is not in the cache"),
    ("hub:own/net@up", 4, "no revision"),
    ("hub:own/net@deep", 4, "no revision"),
    ("hub:own/net@empty", 4, "no revision"),
    ("hub:own/net@dots", 4, "no revision"),
    ("hub:own/net@long", 4, "no revision"),
    ("hub:own/net@link", 4, "no revision"),
    ("hub:own/net@pipe", 4, "no revision"),
    ("hub:own/many", 2, "2 commits"),
    ("hub:own/many@aaaa", 0, ["m"]),
    ("hub:own/net/none.safetensors", 4, "No such file"),
    ("hub:own/net2", 4, "did you mean 'hub:own/net'?"),
    ("hub:nett", 4, "did you mean 'hub:own/net'?"),
    ("hub:own/entirely-different", 4, "`heft ls hub:` lists"),
    ("hub:../net", 2, "write hub:"),
    ("hub:own/..", 2, "write hub:"),
    ("hub:own/net/../../x", 2, "write hub:"),
    ("hub:own/net/a//b", 2, "write hub:"),
    ("hub:own/net@", 2, "write hub:"),
    ("hub:own/net@..", 2, "write hub:"),
    ("hub:own/n et", 2, "write hub:"),
    ("hub:@main", 2, "write hub:"),
    ("hub:" + "x" * 300, 2, "write hub:"),
]


def complaints(cache, name, code, wanted):
    environment = {"HF_HUB_CACHE": str(cache)}
    got, out, err = heft(environment, "ls", "--json", name)
    if got != code:
        return [f"exit {got}, not {code}: {err}"]
    if code:
        return [] if wanted in err else [f"the message is: {err}"]
    names = [t["name"] for t in json.loads(out)["tensors"]]
    return [] if names == wanted and not err else [f"tensors {names}; {err}"]


def check_places(scratch):
    """The variables of the Hugging Face library say where the cache is, the first that is set."""
    folders = {"HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HOME": "hub",
               "XDG_CACHE_HOME": "huggingface/hub", "HOME": ".cache/huggingface/hub"}
    environment = {}
    for variable in reversed(VARIABLES):
        cache = scratch / variable / folders[variable]
        add_file(cache, "a/b", MAIN, "model.safetensors", tensor(variable))
        environment[variable] = str(scratch / variable)
        code, out, err = heft(environment, "ls", "--raw", "hub:a/b")
        yield variable, code == 0 and out.split("\t")[0] == variable, err
    home = {"HOME": str(scratch), "HF_HOME": "~/HF_HOME"}
    yield "tilde", heft(home, "ls", "--raw", "hub:a/b")[1].startswith("HF_HOME\t"), ""
    code, _, err = heft({}, "ls", "hub:a/b")
    yield "no variable", code == 4 and "set HF_HUB_CACHE" in err, err
    code, _, err = heft({"HF_HUB_CACHE": str(scratch / "none")}, "ls", "hub:a/b")
    yield "no cache", code == 4 and "there is no Hugging Face cache" in err and "none" in err, err


def check_commands(cache, scratch):
    """Every command reads the names; none changes the cache."""
    environment = {"HF_HUB_CACHE": str(cache)}
    out = str(scratch / "out.safetensors")
    for args in (("info", "hub:own/net"), ("verify", "hub:own/net", "hub:gpt2"),
                 ("hash", "hub:gpt2"), ("convert", "hub:gpt2", out), ("diff", "hub:gpt2", out),
                 ("cat", "hub:gpt2", "gpt2"), ("scan", "hub:gpt2")):
        code, _, err = heft(environment, *args)
        yield args[0], code == 0, err
    for args in (("edit", "--set", "a=b", "hub:gpt2"), ("append", "hub:gpt2", out)):
        code, _, err = heft(environment, *args)
        yield args[0], code == 2 and "files of the cache are not changed" in err, err
    code, text, err = heft(environment, "ls", "hub:")
    yield "list", text.split() == ["hub:gpt2", "hub:own/many", "hub:own/net"], text + err
    code, text, err = heft(environment, "ls", "--json", "hub:")
    yield "list as JSON", json.loads(text) == ["gpt2", "own/many", "own/net"], text + err
    code, _, err = heft({"HF_HUB_CACHE": str(scratch / "none")}, "ls", "hub:")
    yield "list of no cache", code == 4 and "cannot be listed: No such file" in err, err


def results(scratch):
    cache = scratch / "cache"
    make_cache(cache)
    for name, code, wanted in NAMES:
        yield name[:60], complaints(cache, name, code, wanted)
    for check in (check_places(scratch / "places"), check_commands(cache, scratch)):
        for title, ok, why in check:
            yield title, [] if ok else [why or "differs"]


def main():
    global HEFT
    HEFT = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
