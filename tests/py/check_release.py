#!/usr/bin/env python3
"""check_release.py: make releases of a small tree, and refuse releases that must not be made, and
trials that cannot be made here. The packaging check notices faults of debian/. TAP on stdout."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))
import release_files  # noqa: E402
import tap  # noqa: E402

RELEASE, DEBIAN = TOOLS / "release.py", TOOLS / "check_debian.py"
TREE = {
    "meson.build": "project('heft', 'c',\n  version: '1.2.3',\n",
    "include/heft/heft.h": "#define HEFT_VERSION_MAJOR 1\n#define HEFT_VERSION_MINOR 2\n"
                           "#define HEFT_VERSION_PATCH 3\n",
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3\n\nMore formats.\n\n### Faster\n\nTwice.\n\n"
                    "## 1.2.2\n\nFirst.\n",
    "README.md": "# Heft\n\nVersion 1.2.3.\n",
    "pyproject.toml": '[project]\ndynamic = ["version"]\n',
    "debian/changelog": "heft (1.2.3-1) unstable; urgency=medium\n",
    ".gitignore": "/build-*/\n",
    "src/b.c": "int b;\n",
    "src/a.c": "int a;\n",
}
NOTES = "More formats.\n\n### Faster\n\nTwice.\n"
# A change, and a word of the refusal.
REFUSED = [
    ("a version that differs in the header", "include/heft/heft.h", ("PATCH 3", "PATCH 4"),
     "include/heft/heft.h says 1.2.4"),
    ("a version that differs in pyproject.toml", "pyproject.toml",
     ('dynamic = ["version"]', 'version = "1.3.0"'), "pyproject.toml says 1.3.0"),
    ("a version that differs in the packaging", "debian/changelog", ("1.2.3-1", "1.2.2-1"),
     "debian/changelog says 1.2.2"),
    ("a changelog of the packaging that does not begin with heft", "debian/changelog",
     ("heft (", "left ("), "debian/changelog says nothing"),
    ("a changelog that begins with another version", "CHANGELOG.md", ("## 1.2.3", "## 1.2.4"),
     "CHANGELOG.md says 1.2.4"),
    ("a version that differs in the README", "README.md", ("1.2.3", "1.2.0"),
     "README.md says 1.2.0"),
    ("a changelog that says 'not released'", "CHANGELOG.md", ("## 1.2.3", "## 1.2.3, not released"),
     "not released by CHANGELOG.md"),
    ("a README that says 'not released'", "README.md", ("1.2.3", "1.2.3, not released"),
     "not released by README.md"),
    ("packaging that says UNRELEASED", "debian/changelog", ("unstable", "UNRELEASED"),
     "not released by debian/changelog"),
    ("an empty section of the changelog", "CHANGELOG.md", (NOTES, ""), "says nothing about"),
]
GIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", "-c",
       "commit.gpgsign=false"]
DATES = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}


def commit(root):
    for args in (["add", "-A"], ["commit", "-q", "-m", "all: commit"]):
        subprocess.run([*GIT, *args], cwd=root, check=True, env={**os.environ, **DATES})


def make_tree(root):
    for name, content in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("src/a.c")
    subprocess.run([*GIT, "init", "-q"], cwd=root, check=True)
    commit(root)
    return root


def run(program, *args):
    p = subprocess.run([sys.executable, program, *map(str, args)], capture_output=True, text=True,
                       check=False)
    return p.returncode, p.stdout + p.stderr


def release(root, *args):
    return run(RELEASE, "--root", root, *args)


def change(root, name, old, new):
    path = root / name
    content = path.read_text()
    if old not in content:
        raise ValueError(f"{name} does not contain {old!r}")
    path.write_text(content.replace(old, new, 1))


def expect(result, status, words=""):
    found, output = result
    return [] if found == status and words in output else [
        f"status {found} instead of {status}, or no {words!r} in:", output]


def made(root):
    """Make a release and compare its files with the tree."""
    yield "a release is made", expect(release(root, "1.2.3"), 0)
    out = root / "build-release"
    yield "the notes are the section of the changelog", (
        [] if (out / "NOTES.md").read_text() == NOTES else [(out / "NOTES.md").read_text()])
    p = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True, text=True,
                       check=False)
    checked = p.returncode == 0 and "heft-1.2.3.tar.xz: OK" in p.stdout
    yield "sha256sum agrees", [] if checked else [p.stdout + p.stderr]
    with tarfile.open(out / "heft-1.2.3.tar.xz") as archive:
        members = archive.getmembers()
    names = [m.name for m in members]
    wanted = sorted(f"heft-1.2.3/{n}" for n in [*TREE, "run", "link"] if n != "debian/changelog")
    yield "the archive has the tracked files without debian/, sorted", (
        [] if names == wanted else [str(names)])
    modes = {m.name.split("/", 1)[1]: m.mode for m in members if m.isfile()}
    programs = [name for name, mode in modes.items() if mode == 0o755]
    yield "modes are 755 and 644", [] if programs == ["run"] and set(modes.values()) == {
        0o755, 0o644} else [str(modes)]
    owners = {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members}
    yield "owner and time do not depend on the checkout", (
        [] if owners == {(0, 0, "root", "root", 1767323045)} else [str(owners)])


def equal_bytes(root, scratch):
    """Compare the archives of two clones, one with other permissions and times."""
    first = (root / "build-release/heft-1.2.3.tar.xz").read_bytes()
    clone = scratch / "clone"
    subprocess.run([*GIT, "clone", "-q", root, clone], check=True)
    for path in clone.glob("src/*"):
        path.chmod(0o600)
        os.utime(path, (0, 0))
    result = expect(release(clone), 0)
    second = clone / "build-release/heft-1.2.3.tar.xz"
    yield "another clone gives the same bytes", result or (
        [] if second.read_bytes() == first else ["the archives differ"])


def refusals(root, scratch):
    out = scratch / "out"
    yield "another version than that of the files is refused", expect(
        release(root, "--out", out, "1.2.4"), 1, "not version 1.2.4 everywhere")
    (root / "new.c").write_text("")
    yield "a file that is not tracked is refused", expect(
        release(root, "--out", out), 1, "1 changes, the first is '?? new.c'")
    (root / "new.c").unlink()
    change(root, "src/a.c", "int a", "long a")
    yield "a change that is not committed is refused", expect(
        release(root, "--out", out), 1, "commit them")
    change(root, "src/a.c", "long a", "int a")
    for title, name, (old, new), words in REFUSED:
        change(root, name, old, new)
        commit(root)
        yield f"{title}: refused", expect(release(root, "--out", out), 1, words)
        if "not released" in words:
            yield f"{title}: a draft is made", expect(release(root, "--draft"), 0)
        change(root, name, new, old) if new else (root / name).write_text(TREE[name])
        commit(root)
    yield "no refusal leaves a file", [str(p) for p in out.glob("*")] if out.exists() else []
    plain = scratch / "plain"
    shutil.copytree(root, plain, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    os.environ["GIT_CEILING_DIRECTORIES"] = str(scratch)
    yield "a tree without history is refused", expect(release(plain, "--out", out), 1, "git ")


# A change of this tree's packaging, and a word of the complaint.
FAULTS = [
    ("a function that only heft.map has", "heft.map", ("global:", "global:\n        heft_new;"),
     "heft_new of heft.map is not in"),
    ("a function that only the symbols file has", "heft.map", ("        heft_version;\n", ""),
     "heft_version of libheft0.symbols is not in"),
    ("a version that differs", "debian/changelog", ("-1)", "1-1)"), "debian/changelog says"),
    ("a field without a colon", "debian/control", ("Section: libs", "Section libs"),
     "is not a field"),
    ("a package without a description", "debian/control", ("Description: read", "Summary: read"),
     "heft has no Description"),
    ("a build dependency that ./dev does not know", "debian/control",
     ("libisal-dev,\n", "libisal-dev, left,\n"),
     "./dev does not list left"),
    ("a document that does not exist", "debian/heft.docs", ("README.md", "README.txt"),
     "there is no README.txt"),
    ("a test that does not exist", "debian/tests/control", ("Tests: python", "Tests: perl"),
     "perl is not a program"),
]


def packaging(scratch):
    """Damage copies of this tree's packaging."""
    tree = scratch / "packaging"
    for name in ("debian", "docs", "examples", "include"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("dev", "heft.map", "meson.build", "CHANGELOG.md", "NOTICE", "README.md",
                 "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    (tree / "tools").mkdir()
    shutil.copy(ROOT / "tools/packages.tsv", tree / "tools")
    for title, name, (old, new), words in FAULTS:
        before = (tree / name).read_text()
        change(tree, name, old, new)
        yield f"{title}: noticed", expect(run(DEBIAN, tree), 1, words)
        (tree / name).write_text(before)
    yield "the packaging is sound", expect(run(DEBIAN, tree), 0)


def refused(call, *args):
    """Return the message of the problem that a call finds, or None."""
    try:
        call(*args)
    except release_files.Problem as problem:
        return str(problem)
    return None


def contents(scratch):
    """Check what is said about the files of a release, and what must not be in them."""
    folder = scratch / "programs"
    folder.mkdir()
    shutil.copy(shutil.which("sleep"), folder)
    tag = release_files.audited(folder)
    yield "a program that needs the C library alone has a platform", (
        [] if tag.startswith("manylinux_2_") else [tag])
    shutil.copy(shutil.which("ls"), folder)
    said = refused(release_files.audited, folder) or "nothing"
    yield "a library of this machine is refused by name", (
        [] if said.startswith("ls needs libselinux") else [said])
    file = folder / "heft-1"
    file.write_bytes(b"heft")
    said = refused(release_files.at_most, file, 3) or "nothing"
    yield "a file that is too large is refused", (
        [] if said == "heft-1 has 4 bytes, more than 3" else [said])
    bill = release_files.bill([file], {"heft-1": ()}, "1.2.3")
    made = bill["components"][0]["hashes"][0]["content"]
    wanted = hashlib.sha256(b"heft").hexdigest()
    yield "the bill of materials has the digest of each file", [] if made == wanted else [made]
    missing = [name for name in release_files.INSIDE
               if not any(name in libraries for _, libraries in release_files.KINDS.values())]
    yield "each library inside is in a kind of file", missing
    release_files.INSIDE["left"] = ("left", "MIT")
    said = refused(release_files.licences, ["left"]) or "nothing"
    yield "a library without its licence is refused", (
        [] if said.startswith("the licence of left is not at") else [said])
    text = release_files.licences([])
    yield "the licence and the notice of Heft are among the licences", [
        words for words in ("Apache License", "The Heft authors") if words not in text]


def trials(scratch):
    """Ask for trials where no clean Debian can be made: a folder of programs without mmdebstrap."""
    before = os.environ["PATH"]
    os.environ["PATH"] = str(scratch)
    words = "mmdebstrap, which" if os.geteuid() == 0 else "only root"
    yield "without mmdebstrap or root no system is made, and it is said why", expect(
        run(TOOLS / "clean_root.py", "--can"), 1, words)
    yield "the files of a release are not tried then", expect(
        run(TOOLS / "try_release.py", scratch), 1, words)
    yield "the steps of a new user are not taken then", expect(
        run(TOOLS / "clean_debian.py", "install"), 1, words)
    os.environ["PATH"] = before
    ended = scratch / "ended.py"
    ended.write_text(f"import sys\nsys.path.insert(0, {str(TOOLS)!r})\nimport tap\n"
                     "def results():\n    yield 'first', []\n    sys.exit(3)\n"
                     "tap.report(results())\n")
    yield "a trial that is ended has told what went before", expect(run(ended), 3, "ok 1 - first")


def results(scratch):
    root = scratch / "tree"
    root.mkdir()
    make_tree(root)
    yield from made(root)
    yield from equal_bytes(root, scratch)
    yield from refusals(root, scratch)
    if shutil.which("readelf"):
        yield from contents(scratch)
    yield from trials(scratch)
    if (ROOT / "debian").is_dir():
        yield from packaging(scratch)


def main():
    if not shutil.which("git"):
        print("1..0 # SKIP git is not installed")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(results(pathlib.Path(scratch)))


sys.exit(main())
