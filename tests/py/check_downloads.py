#!/usr/bin/env python3
"""check_downloads.py HEFT: heft verify --hub compares files with the digests that the hub states.

The caches and folders of downloads are made here, with digests by hashlib; the files need not be
models. TAP on stdout."""
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

HEFT = os.path.abspath(sys.argv[1])
LARGE = bytes(range(256)) * 16400  # more than four chunks
SMALL = b'{"hidden_size": 4}\n'
DONE, FOUND, USAGE, SYSTEM = 0, 1, 2, 4


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Cache:
    """A repository in a cache, with a revision of two files; the second lies in a folder."""

    def __init__(self, root):
        self.folder = pathlib.Path(root, "models--ann--tiny")
        self.snapshot = self.folder / "snapshots" / ("a" * 40)
        (self.folder / "blobs").mkdir(parents=True)
        (self.folder / "refs").mkdir()
        (self.folder / "refs" / "main").write_text("a" * 40)
        self.large = self.add("model.safetensors", LARGE, sha256(LARGE))
        self.small = self.add("sub/config.json", SMALL, git_sha1(SMALL))

    def add(self, name, data, digest, revision=None):
        blob = self.folder / "blobs" / digest
        blob.write_bytes(data)
        link = (self.snapshot.with_name(revision) if revision else self.snapshot) / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
        return link


def download(root, data=LARGE, tag=None):
    """A folder that `hf download --local-dir` filled."""
    local = pathlib.Path(root, "local")
    notes = local / ".cache/huggingface/download" / "sub" / "m.bin.metadata"
    notes.parent.mkdir(parents=True)
    notes.write_text(f"{'a' * 40}\n{tag or sha256(LARGE)}\n1700000000.5\n")
    (local / "sub").mkdir()
    (local / "sub" / "m.bin").write_bytes(data)
    return local


def run(*args, cwd=None):
    p = subprocess.run([HEFT, "verify", "--hub", *map(str, args)], capture_output=True, text=True,
                       cwd=cwd, check=False)
    return p.returncode, p.stdout, p.stderr


def results(*args):
    """Return the exit status, ok, [(rule, name of the file) …] and the bytes of one argument."""
    code, out, _ = run("--json", *args)
    d = json.loads(out) if out else {"ok": None, "findings": [], "bytes_checked": 0}
    return code, d["ok"], [(f["rule"], pathlib.Path(f["path"]).name)
                           for f in d["findings"]], d["bytes_checked"]


def differing(got, want):
    return [] if got == want else [f"got {got}", f"not {want}"]


# ---- cases ----------------------------------------------------------------------------------

BOTH = len(LARGE) + len(SMALL)


def whole_snapshot(root):
    return differing(results(Cache(root).snapshot), (DONE, True, [], BOTH))


def one_link(root):
    return differing(results(Cache(root).large), (DONE, True, [], len(LARGE)))


def a_blob(root):
    return differing(results(Cache(root).small.resolve()), (DONE, True, [], len(SMALL)))


def repository(root):
    """Each blob is read once, although links of two revisions lead to it."""
    cache = Cache(root)
    cache.add("model.safetensors", LARGE, sha256(LARGE), "b" * 40)
    return differing(results(cache.folder), (DONE, True, [], BOTH))


def text_of_results(root):
    cache = Cache(root)
    code, out, _ = run("model.safetensors", cwd=cache.snapshot)
    return differing((code, out), (DONE, f"model.safetensors: ok ({len(LARGE)} bytes checked; "
                                         "every file has the digest that the hub states)\n"))


def changed(link, at):
    blob = link.resolve()
    data = bytearray(blob.read_bytes())
    data[at] ^= 1
    blob.write_bytes(data)


def changed_byte(root):
    cache, bad = Cache(root), []
    for link, at, rule in ((cache.large, 0, "hub/sha256"), (cache.small, 5, "hub/git-sha1"),
                           (cache.large, len(LARGE) - 1, "hub/sha256")):
        changed(link, at)
        bad += differing(results(link)[:3], (FOUND, False, [(rule, link.name)]))
        changed(link, at)
    return bad + differing(results(cache.snapshot)[0], DONE)


def digests_are_named(root):
    cache = Cache(root)
    changed(cache.large, 7)
    _, out, _ = run(cache.large)
    data = cache.large.read_bytes()
    return [] if sha256(data) in out and sha256(LARGE) in out else [out]


def cut(root):
    cache = Cache(root)
    os.truncate(cache.large.resolve(), len(LARGE) - 1)
    want = FOUND, False, [("hub/sha256", "model.safetensors")], BOTH - 1
    return differing(results(cache.snapshot), want)


def missing_blob(root):
    cache = Cache(root)
    cache.large.resolve().unlink()
    missing = FOUND, False, [("hub/missing", "model.safetensors")]
    return (differing(results(cache.snapshot), (*missing, len(SMALL))) +
            differing(results(cache.large), (*missing, 0)))


def missing_blob_of_a_repository(root):
    """A link that leads nowhere is found from the repository and from the cache, too."""
    cache = Cache(root)
    cache.large.resolve().unlink()
    want = FOUND, False, [("hub/missing", "model.safetensors")], len(SMALL)
    return (differing(results(cache.folder), want) + differing(results(root), want) +
            differing(run(".", cwd=cache.folder)[0], FOUND))


def whole_cache(root):
    """Commits of branches, and records of absent files, have no digest and need none."""
    cache = Cache(root)
    absent = cache.folder / ".no_exist" / ("a" * 40) / "adapter_config.json"
    lock = pathlib.Path(root, ".locks", "models--ann--tiny", "x.lock")
    for path in (absent, lock, pathlib.Path(root, "CACHEDIR.TAG")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    bad = []
    for path in (root, cache.folder):
        bad += differing(results(path), (DONE, True, [], BOTH))
    (cache.folder / "blobs" / "plain").write_text("")
    want = DONE, True, [("hub/no-digest", "plain")], BOTH
    return bad + differing(results(root), want) + differing(results(cache.folder), want)


def unfinished_download(root):
    cache = Cache(root)
    (cache.folder / "blobs" / f"{'b' * 64}.incomplete").write_bytes(LARGE[:9])
    want = DONE, True, [("hub/incomplete", f"{'b' * 64}.incomplete")], BOTH
    return differing(results(cache.folder), want)


def link_that_leaves_the_repository(root):
    """A file outside of the repository is not covered by the digest of a blob."""
    cache = Cache(root)
    plain = pathlib.Path(root, "plain.bin")
    plain.write_bytes(SMALL)
    (cache.snapshot / "plain.bin").symlink_to(plain)
    return differing(results(cache.folder), (DONE, True, [("hub/no-digest", "plain.bin")], BOTH))


def verify_points_at_the_digest(root):
    """Without --hub, the answer for a download without checksums names the option."""
    data = gen_shards.pack({"a": ("U8", [1], b"x")})
    cache = Cache(root)
    link = cache.add("x.safetensors", data, sha256(data), "b" * 40)
    plain = pathlib.Path(root, "plain.safetensors")
    plain.write_bytes(data)
    bad = []
    for path, wanted in ((link, True), (link.parent, True), (plain, False)):
        p = subprocess.run([HEFT, "verify", path], capture_output=True, text=True, check=False)
        bad += differing((p.returncode, "--hub compares" in p.stdout), (DONE, wanted))
    return bad


def foreign_file(root):
    """A file that is no link is a warning, and a failure with --strict."""
    cache = Cache(root)
    (cache.snapshot / "added.py").write_text("import os\n")
    added = [("hub/no-digest", "added.py")]
    return (differing(results(cache.snapshot), (DONE, True, added, BOTH)) +
            differing(results("--strict", cache.snapshot), (FOUND, False, added, BOTH)))


def downloaded(root):
    local = download(root)
    want = DONE, True, [], len(LARGE)
    bad = differing(results(local), want) + differing(results(local / "sub" / "m.bin"), want)
    return bad + differing(run("m.bin", cwd=local / "sub")[0], DONE)


def changed_after_the_download(root):
    local = download(root, data=SMALL)
    return differing(results(local), (FOUND, False, [("hub/sha256", "m.bin")], len(SMALL)))


def unusable_notes(root):
    """Notes without a digest are no notes."""
    bad = []
    for i, tag in enumerate(("", "A" * 64, "g" * 64, "a" * 39, "a" * 65, '"' + "a" * 64)):
        local = download(pathlib.Path(root, str(i)), tag=tag or " ")
        bad += differing(run(local)[0], USAGE)
    return bad


def elsewhere(root):
    plain = pathlib.Path(root, "plain.bin")
    plain.write_bytes(SMALL)
    code, _, said = run(plain)
    return differing((code, "is not in a Hugging Face cache" in said), (USAGE, True))


def no_such_file(root):
    code, _, said = run(pathlib.Path(root, "nothing"))
    return differing((code, "No such file" in said), (SYSTEM, True))


def other_options(_root):
    bad = []
    for option in (["--quick"], ["--profile", "bert"]):
        code, _, said = run(*option, "x")
        bad += differing((code, "--hub excludes the other checks, --profile" in said),
                         (USAGE, True))
    return bad


CASES = [whole_snapshot, one_link, a_blob, repository, text_of_results, changed_byte,
         digests_are_named, cut, missing_blob, foreign_file, downloaded,
         changed_after_the_download, unusable_notes, elsewhere,
         no_such_file, other_options, missing_blob_of_a_repository, whole_cache,
         unfinished_download, link_that_leaves_the_repository, verify_points_at_the_digest]


def main():
    def one(case):
        with tempfile.TemporaryDirectory(prefix="heft-hub-") as root:
            return case.__name__.replace("_", " "), case(root)

    return tap.report(map(one, CASES))


sys.exit(main())
