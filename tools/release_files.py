#!/usr/bin/env python3
"""release_files.py ARCHIVE [--key KEY] [--only KIND...]: make what users take, beside ARCHIVE.

ARCHIVE is the heft-VERSION.tar.xz of release.py. Everything is made from its content, without a
network: packages of Debian, a wheel, the package for npm, a static program, the library as one
file. The folder also gets bom.cdx.json, LICENSES.txt, SHA256SUMS and, with a private KEY, heft.sig,
which `heft verify --signature` checks. What is made on the way lies in ../work."""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINE = platform.machine()
STATIC_BYTES, WHEEL_BYTES = 4_000_000, 5_000_000
# Libraries of the system that a wheel may need, as in the policies of manylinux.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# Libraries inside of what is made: package of Debian, licence.
INSIDE = {"musl": ("musl-dev", "MIT"), "openssl": ("libssl-dev", "Apache-2.0"),
          "xxhash": ("libxxhash-dev", "BSD-2-Clause"), "zlib": ("zlib1g-dev", "Zlib"),
          "zstd": ("libzstd-dev", "BSD-3-Clause")}


class Problem(Exception):
    """Something that must not be released, or that cannot be made here."""


def run(*command, cwd=None, **env):
    p = subprocess.run([str(c) for c in command], cwd=cwd, env={**os.environ, **env}, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if p.returncode:
        tail = "\n".join(p.stdout.splitlines()[-30:])
        raise Problem(f"{' '.join(map(str, command))} ended with {p.returncode}:\n{tail}")
    return p.stdout


def offline(*command, **how):
    """Run a command without a network, where this machine can take it away."""
    able = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    return run(*([] if able.returncode else ["unshare", "-n"]), *command, **how)


def cached(compiler):
    return f"ccache {compiler}" if shutil.which("ccache") else compiler


def at_most(path, limit):
    size = path.stat().st_size
    if size > limit:
        raise Problem(f"{path.name} has {size} bytes, more than {limit}")
    return path


# ---- what programs need -----------------------------------------------------------------------

def needed(path):
    """Return the shared libraries that a program or library asks for."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", path, LC_ALL="C")))


def newest_glibc(path):
    """Return the newest version of the C library that a program asks for, (2, 34)."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "-V", path, LC_ALL="C"))
    return max((tuple(map(int, v)) for v in found), default=(2, 5))


def audited(folder):
    """Return the platform that the programs below a folder run on; refuse libraries of others."""
    newest, files = (2, 5), sorted(p for p in folder.rglob("*") if p.is_file())
    for path in files:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        other = needed(path) - SYSTEM - {p.name for p in files}
        if other:
            raise Problem(f"{path.name} needs {', '.join(sorted(other))} of this machine")
        newest = max(newest, newest_glibc(path))
    return f"manylinux_{newest[0]}_{newest[1]}_{MACHINE}"


# ---- what is made -----------------------------------------------------------------------------

class Release:
    """The folder with the files, the unpacked archive, and the version."""

    def __init__(self, archive):
        self.archive, self.out = archive, archive.parent
        self.work = self.out.parent / "work"
        self.version = re.fullmatch(r"heft-(.+)\.tar\.xz", archive.name)[1]
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        with tarfile.open(archive) as packed:
            packed.extractall(self.work)
        self.tree = self.work / f"heft-{self.version}"

    def meson(self, name, *options, **env):
        """Configure and build the command in a folder of its own; return the command."""
        build = self.work / name
        offline("meson", "setup", build, self.tree, "-Dtests=disabled", "-Dexamples=false",
                *options, **env)
        offline("ninja", "-C", build, "heft")
        return build / "heft"


def make_static(release):
    """The command with musl and the libraries of compression inside."""
    headers = f"-idirafter /usr/include -idirafter /usr/include/{MACHINE}-linux-gnu"
    enabled = [f"-D{name}=enabled" for name in ("zlib", "zstd", "xxhash")]
    heft = release.meson("static", "-Dauto_features=disabled", *enabled, "-Dstatic_command=true",
                         f"-Dc_args={headers}", CC=cached("musl-gcc"))
    to = release.out / f"heft-{release.version}-linux-{MACHINE}"
    run("strip", "-o", to, heft)
    if needed(to):
        raise Problem(f"{to.name} is not static: it needs {', '.join(needed(to))}")
    return [at_most(to, STATIC_BYTES)]


def make_wheel(release):
    """The Python package, whose tag says which C library it needs."""
    made = release.work / "wheel"
    offline(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", made,
            cwd=release.tree)
    wheel = next(made.glob("*.whl"))
    folder = made / f"heft-{release.version}"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():  # `wheel unpack` forgets modes
            pathlib.Path(archive.extract(member, folder)).chmod(
                member.external_attr >> 16 & 0o777 or 0o644)
    about = next(folder.glob("*.dist-info")) / "WHEEL"
    about.write_text(re.sub(r"linux_\w+", audited(folder), about.read_text()))
    run(sys.executable, "-m", "wheel", "pack", "-d", release.out, folder)
    return [at_most(next(release.out.glob("*.whl")), WHEEL_BYTES)]


def make_deb(release):
    """The packages of Debian; their tests have run before a release is made."""
    folder = release.work / "deb"
    shutil.copytree(release.tree, folder / release.tree.name, symlinks=True)
    shutil.copy(release.archive, folder / f"heft_{release.version}.orig.tar.xz")
    shutil.copytree(ROOT / "debian", folder / release.tree.name / "debian")
    offline("dpkg-buildpackage", "-us", "-uc", "-b", cwd=folder / release.tree.name,
            DEB_BUILD_OPTIONS=f"nocheck parallel={os.cpu_count()}")
    return [shutil.copy(p, release.out) for p in sorted(folder.glob("*.deb"))
            if "dbgsym" not in p.name]


def make_npm(release):
    folder = release.work / "npm"
    offline(sys.executable, release.tree / "tools/build_web.py", folder)
    packed = list(folder.glob("*.tgz"))
    if not packed:
        raise Problem("npm, which packs the package for it, is not installed")
    name = json.loads((folder / "package/package.json").read_text())["name"]
    if not re.fullmatch(r"@[\w-]+/[\w-]+", name):
        raise Problem(f"the package for npm has no scope: {name}")
    return [shutil.copy(packed[0], release.out)]


def make_one_file(release):
    folder = release.work / f"heft-{release.version}-one-file"
    offline(sys.executable, release.tree / "tools/amalgamate.py", "--desktop", "all", folder)
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(release.tree / name, folder)
    to = release.out / f"{folder.name}.tar.xz"
    with tarfile.open(to, "w:xz") as archive:
        archive.add(folder, folder.name, filter=plain_member)
    return [to]


def plain_member(member):
    """Return a member of an archive without the owner and the time of this machine."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = "root"
    return member


# The function that makes each kind, and the libraries inside.
KINDS = {
    "static": (make_static, ("musl", "xxhash", "zlib", "zstd")),
    "wheel": (make_wheel, ("openssl", "xxhash", "zlib", "zstd")),
    "deb": (make_deb, ()),
    "npm": (make_npm, ("xxhash",)),
    "one-file": (make_one_file, ()),
}


# ---- what is said about it --------------------------------------------------------------------

def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def component(path, version):
    return {"type": "file", "name": path.name, "bom-ref": path.name, "version": version,
            "hashes": [{"alg": "SHA-256", "content": digest(path)}],
            "licenses": [{"license": {"id": "Apache-2.0"}}]}


def library(name):
    package, licence = INSIDE[name]
    version = run("dpkg-query", "-W", "-f=${Version}", package)
    return {"type": "library", "name": name, "bom-ref": name, "version": version,
            "licenses": [{"license": {"id": licence}}]}


def libraries_in(inside):
    return sorted({name for names in inside.values() for name in names})


def bill(files, inside, version):
    """Return a bill of materials in CycloneDX: files, and {file name: libraries inside}."""
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "metadata": {"component": {"type": "application", "name": "heft", "bom-ref": "heft",
                                       "version": version}},
            "components": [*(component(p, version) for p in files),
                           *map(library, libraries_in(inside))],
            "dependencies": [{"ref": name, "dependsOn": sorted(names)}
                             for name, names in sorted(inside.items()) if names]}


def licences(libraries):
    """Return the licence of Heft and those of libraries, as Debian's packages state them."""
    files = [(name, ROOT / name) for name in ("LICENSE", "NOTICE")]
    files += [(name, pathlib.Path("/usr/share/doc", INSIDE[name][0], "copyright"))
              for name in libraries]
    for name, path in files:
        if not path.exists():
            raise Problem(f"the licence of {name} is not at {path}: its package is installed "
                          "without documents")
    return "\n".join(f"==== {name} ====\n\n{path.read_text()}" for name, path in files)


def describe(release, inside, key):
    """Write the bill, licences, sums and, with a key, the signature; return that or None."""
    for name in ("bom.cdx.json", "LICENSES.txt", "SHA256SUMS", "heft.sig"):
        (release.out / name).unlink(missing_ok=True)
    files = sorted(p for p in release.out.iterdir() if p.name != "NOTES.md")
    (release.out / "bom.cdx.json").write_text(
        json.dumps(bill(files, inside, release.version), indent=1) + "\n")
    (release.out / "LICENSES.txt").write_text(licences(libraries_in(inside)))
    files = sorted(release.out.iterdir())
    (release.out / "SHA256SUMS").write_text(
        "".join(f"{digest(p)}  {p.name}\n" for p in files))
    if not key:
        return None
    heft = ROOT / "build/heft"
    run(heft, "sign", "--key", key, "-o", release.out / "heft.sig", release.out)
    return release.out / "heft.sig"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--key", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    try:
        release = Release(args.archive.resolve())
        inside = {}
        for kind in args.only:
            make, libraries = KINDS[kind]
            for path in make(release):
                path = pathlib.Path(path)
                inside[path.name] = libraries
                print(f"{path.stat().st_size:>12,} {path.name}", flush=True)
        if not describe(release, inside, args.key):
            print("not signed: --key names the private key", file=sys.stderr)
    except Problem as problem:
        print(f"release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
