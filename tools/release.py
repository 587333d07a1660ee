#!/usr/bin/env python3
"""release.py [--draft] [--root DIR] [--out DIR] [VERSION]: make the files of a release.
release.py --pack FILE: only pack the tracked files as they are now, committed or not.
release.py --version: only print the version.

OUT (build-release) gets heft-VERSION.tar.xz, SHA256SUMS and NOTES.md, the section of CHANGELOG.md.
The archive is made from the last commit, without debian/: equal commits give equal bytes. Nothing
is made if the tree has changes, if files disagree about the version, or if a file says that the
version is not released. --draft allows a version that is not released."""
import argparse
import hashlib
import io
import lzma
import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER = r"(\d+\.\d+\.\d+)"
# Files that state the version, each with a pattern; the groups give the version.
PLACES = [
    ("meson.build", rf"^  version: '{NUMBER}'"),
    ("include/heft/heft.h",
     r"_VERSION_MAJOR (\d+)\n.*_VERSION_MINOR (\d+)\n.*_VERSION_PATCH (\d+)"),
    ("CHANGELOG.md", rf"^## {NUMBER}"),
    ("README.md", rf"^Version {NUMBER}"),
]
# Files that may state the version, too.
OPTIONAL_PLACES = [
    ("pyproject.toml", rf'^version = "{NUMBER}"'),
    ("debian/changelog", rf"\Aheft \({NUMBER}-[0-9a-z.+~]+\)"),
]
UNRELEASED = [
    ("CHANGELOG.md", r"^## {}, not released"),
    ("README.md", r"^Version {}, not released"),
    ("debian/changelog", r"\Aheft \({}-\S+\) UNRELEASED"),
]


class Refusal(Exception):
    """The reason why there is no release, and the next thing to do."""


def text(root, name):
    path = root / name
    return path.read_text() if path.exists() else None


def stated(root, name, pattern):
    """Return the version that a file states, or None."""
    content = text(root, name)
    found = re.search(pattern, content, re.M) if content is not None else None
    return ".".join(found.groups()) if found else None


def versions(root):
    """Return the version by file; None for a file that must state the version and does not."""
    found = {name: stated(root, name, pattern) for name, pattern in PLACES}
    for name, pattern in OPTIONAL_PLACES:
        version = stated(root, name, pattern)
        if version or name == "debian/changelog" and (root / name).exists():
            found[name] = version
    return found


def agreed_version(root, wanted=None):
    """Return the version on which all files agree."""
    found = versions(root)
    version = wanted or found["meson.build"]
    other = [f"{name} says {v or 'nothing'}" for name, v in found.items() if v != version]
    if other:
        raise Refusal(f"this is not version {version} everywhere: {', '.join(other)}")
    return version


def refuse_unreleased(root, version):
    """Refuse a version that a file calls not released."""
    places = [name for name, pattern in UNRELEASED
              if re.search(pattern.format(re.escape(version)), text(root, name) or "", re.M)]
    if places:
        raise Refusal(f"version {version} is not released by {', '.join(places)}: change that and "
                      "commit, or make a --draft")


def git(root, *args):
    try:
        p = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Refusal("git is not installed, which a release needs") from None
    if p.returncode:
        raise Refusal(f"git {args[0]} failed: {p.stderr.strip()}")
    return p.stdout


def refuse_changes(root):
    """Refuse changes that are not committed, and files that are neither tracked nor ignored."""
    changed = git(root, "status", "--porcelain").splitlines()
    if changed:
        raise Refusal(f"the tree has {len(changed)} changes, the first is '{changed[0]}': commit "
                      "them or take them back")


def entries(root):
    """Yield (name, mode) of the tracked files, sorted, without the packaging of Debian, which a
    source package keeps apart."""
    for row in sorted(git(root, "ls-files", "--stage", "-z").split("\0")[:-1],
                      key=lambda row: row.split("\t", 1)[1]):
        name = row.split("\t", 1)[1]
        if not name.startswith("debian/") and (root / name).exists():
            yield name, row.split(" ", 1)[0]


def packed(root, folder):
    """Return the bytes of the archive: sorted, of owner 0, with the time of the last commit."""
    time = int(git(root, "log", "-1", "--format=%ct"))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, mode in entries(root):
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.mtime, info.mode = time, 0o755 if mode == "100755" else 0o644
            info.uname = info.gname = "root"
            if mode == "120000":
                info.type, info.linkname = tarfile.SYMTYPE, str((root / name).readlink())
                archive.addfile(info)
                continue
            content = (root / name).read_bytes()
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return lzma.compress(out.getvalue(), preset=6)


def notes(root, version):
    """Return the section of CHANGELOG.md, without its heading."""
    pattern = rf"^## {re.escape(version)}.*?\n(.*?)(?=^## |\Z)"
    section = re.search(pattern, text(root, "CHANGELOG.md"), re.M | re.S)
    if not section or not section[1].strip():
        raise Refusal(f"CHANGELOG.md says nothing about version {version}")
    return section[1].strip() + "\n"


def release(root, out, wanted, draft):
    version = agreed_version(root, wanted)
    if not draft:
        refuse_unreleased(root, version)
    refuse_changes(root)
    name = f"heft-{version}.tar.xz"
    files = {name: packed(root, f"heft-{version}"), "NOTES.md": notes(root, version).encode()}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {n}\n" for n, data in files.items())
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("heft-*.tar.xz"):
        old.unlink()
    for file, data in [*files.items(), ("SHA256SUMS", sums.encode())]:
        (out / file).write_bytes(data)
    return out / name


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--draft", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--pack", type=pathlib.Path)
    parser.add_argument("--version", action="store_true", dest="ask")
    parser.add_argument("version", nargs="?")
    args = parser.parse_args()
    try:
        if args.ask:
            print(agreed_version(args.root))
        elif args.pack:
            version = agreed_version(args.root)
            args.pack.write_bytes(packed(args.root, f"heft-{version}"))
        else:
            print(release(args.root, args.out or args.root / "build-release", args.version,
                          args.draft))
    except Refusal as refusal:
        print(f"release: {refusal}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
