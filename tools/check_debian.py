#!/usr/bin/env python3
"""check_debian.py [--write] [ROOT [BUILD]]: check the packaging in debian/ without building it.

The control files parse, the symbols file lists the functions of heft.map, all versions agree, the
build dependencies are in tools/packages.tsv, each package installs files, and each file that BUILD
installs is in a package. --write writes the
symbols file: new functions get the current version. TAP on stdout."""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

import release
import tap

SYMBOL = re.compile(r"^ ([\w.]+)@([\w.]+) (\S+)$", re.M)
HEADER = "libheft.so.0 libheft0 #MINVER#\n* Build-Depends-Package: libheft-dev\n"
PACKAGES = {"libheft0", "libheft-dev", "heft", "python3-heft"}
# Required of a paragraph of each kind.
SOURCE_FIELDS = ["Source", "Section", "Priority", "Maintainer", "Build-Depends",
                 "Standards-Version", "Rules-Requires-Root"]
PACKAGE_FIELDS = ["Package", "Architecture", "Depends", "Description"]
COPYRIGHT_FIELDS = {"Format", "Files", "License"}


def paragraphs(content):
    """Return the paragraphs of a control file as dictionaries; raise ValueError with a line that is
    not a field."""
    found, field = [{}], None
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            found, field = found + [{}] if found[-1] else found, None
        elif line[0] in " \t" and field:
            found[-1][field] += "\n" + line.strip()
        else:
            name, colon, value = line.partition(":")
            if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name) or name in found[-1]:
                raise ValueError(f"line {number} is not a field: {line!r}")
            found[-1][name], field = value.strip(), name
    return [p for p in found if p]


def lacking(paragraph, fields, title):
    return [f"{title} has no {field}" for field in fields if not paragraph.get(field)]


def control_faults(source, packages):
    yield from lacking(source, SOURCE_FIELDS, "the source")
    for package in packages:
        name = package.get("Package", "a package")
        yield from lacking(package, PACKAGE_FIELDS, name)
        long = [row for row in package.get("Description", "").split("\n") if len(row) > 79]
        yield from (f"{name}: a row of the description is too long: {row}" for row in long)
    names = {package.get("Package") for package in packages}
    if names != PACKAGES:
        yield f"the packages are {sorted(map(str, names))}, not {sorted(PACKAGES)}"


def exported(root):
    """Return (function, version of the map) for each function of heft.map."""
    found, node = [], None
    for line in (root / "heft.map").read_text().splitlines():
        opened = re.match(r"([\w.]+) \{", line)
        node = opened[1] if opened else node
        name = re.match(r"\s+(heft_\w+);", line)
        if name:
            found.append((name[1], node))
    return found


def symbols_text(root, version):
    """Return the symbols file: known functions keep the first version that has the function."""
    path = root / "debian/libheft0.symbols"
    since = {(name, node): v for name, node, v in
             SYMBOL.findall(path.read_text() if path.exists() else "")}
    wanted = exported(root)
    wanted += [(node, node) for node in {node for _, node in wanted}]
    rows = [f" {name}@{node} {since.get((name, node), version)}\n" for name, node in sorted(wanted)]
    return HEADER + "".join(rows)


def symbols_faults(root):
    content = (root / "debian/libheft0.symbols").read_text()
    listed = {(name, node) for name, node, _ in SYMBOL.findall(content) if name != node}
    wanted = set(exported(root))
    faults = [f"{name} of heft.map is not in libheft0.symbols" for name, _ in wanted - listed]
    faults += [f"{name} of libheft0.symbols is not in heft.map" for name, _ in listed - wanted]
    if not faults and content != symbols_text(root, ""):
        faults = ["libheft0.symbols is not what is written from heft.map"]
    return sorted(faults) + (["tools/check_debian.py --write writes the file"] if faults else [])


def version_faults(root):
    try:
        release.agreed_version(root)
    except release.Refusal as refusal:
        return [str(refusal)]
    return []


def build_dependencies(source):
    """Return the names of the packages that the build needs, except debhelper's packages."""
    rows = source.get("Build-Depends", "").replace("\n", " ").split(",")
    names = [row.split()[0] for row in rows if row.split()]
    return [name for name in names if not name.startswith(("debhelper", "dh-sequence-"))]


def unlisted(root, source):
    """Return build dependencies that ./dev does not install."""
    rows = (root / "tools/packages.tsv").read_text().splitlines()
    listed = [row.split("\t")[1] for row in rows if row.count("\t") == 2]
    return [f"./dev does not list {name}" for name in build_dependencies(source)
            if name not in listed]


def changelog_faults(root):
    """Let dpkg parse the changelog, where dpkg is installed."""
    try:
        p = subprocess.run(["dpkg-parsechangelog", "-l", root / "debian/changelog"],
                           capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return (p.stdout + p.stderr).splitlines() if p.returncode or p.stderr else []


def missing_documents(root):
    """Return documents and examples of packages that do not exist."""
    return [f"{path.name}: there is no {pattern}"
            for kind in ("docs", "examples")
            for path in sorted((root / "debian").glob(f"*.{kind}"))
            for pattern in path.read_text().split() if not list(root.glob(pattern))]


def test_faults(root):
    """Return tests that control names and that are not programs."""
    rows = paragraphs((root / "debian/tests/control").read_text())
    names = [name for row in rows for name in row.get("Tests", "").replace(",", " ").split()]
    found = [root / "debian/tests" / name for name in names]
    return (["no tests"] if not names else []) + [
        f"{path} is not a program" for path in found if not path.exists()
        or not path.stat().st_mode & 0o100]


def results(root):
    try:
        source, *packages = paragraphs((root / "debian/control").read_text())
        copyrights = paragraphs((root / "debian/copyright").read_text())
    except ValueError as error:
        yield "the control files parse", [str(error)]
        return
    fields = {field for paragraph in copyrights for field in paragraph}
    yield "the control files parse", [*control_faults(source, packages),
                                      *sorted(COPYRIGHT_FIELDS - fields)]
    yield "the symbols file lists the functions of heft.map", symbols_faults(root)
    yield "the versions agree", version_faults(root)
    yield "the changelog parses", changelog_faults(root)
    yield "./dev lists the build dependencies", unlisted(root, source)
    yield "each package installs files", [
        f"there is no debian/{name}.install" for name in sorted(PACKAGES)
        if not (root / f"debian/{name}.install").exists()]
    yield "the documents of the packages exist", missing_documents(root)
    yield "the tests of the packages are programs", test_faults(root)


def patterns(root):
    """Return the paths that packages take, and the paths that no package needs."""
    files = [*(root / "debian").glob("*.install"), root / "debian/not-installed"]
    text = "\n".join(re.sub(r"^#.*", "", f.read_text(), flags=re.M) for f in files)
    return text.split() + re.findall(r"\busr/\S+", (root / "debian/rules").read_text())


def unpacked(root, build):
    """Return installed files that are in no package."""
    info = build / "meson-info"
    rows = json.loads((info / "intro-buildoptions.json").read_text())
    options = {row["name"]: row["value"] for row in rows}
    libraries, usr = "usr/" + options["libdir"], pathlib.PurePosixPath("usr")
    taken = patterns(root)
    for file in sorted(json.loads((info / "intro-installed.json").read_text()).values()):
        name = usr / pathlib.PurePosixPath(file).relative_to(options["prefix"])
        if name.is_relative_to(libraries):
            name = usr / "lib/TRIPLET" / name.relative_to(libraries)
        if not any(fnmatch.fnmatchcase(str(part), pattern) for pattern in taken
                   for part in (name, *name.parents)):
            yield f"{name} is in no package: add it to debian/*.install or debian/not-installed"


def main():
    args = [arg for arg in sys.argv[1:] if arg != "--write"]
    root = pathlib.Path(args[0]).resolve() if args else release.ROOT
    if not (root / "debian").is_dir():
        print("1..0 # SKIP there is no debian/ in the archive of a release")
        return 0
    if "--write" in sys.argv:
        text = symbols_text(root, release.agreed_version(root))
        (root / "debian/libheft0.symbols").write_text(text)
    found = list(results(root))
    if len(args) > 1:
        complaints = list(unpacked(root, pathlib.Path(args[1])))
        found.append(("each installed file is in a package", complaints))
    return tap.report(found)


if __name__ == "__main__":
    sys.exit(main())
