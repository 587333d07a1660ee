"""machine_libraries.py - the libraries that tools/machines.py builds with.

Debian's packages for the processor are unpacked into a folder of the build: dpkg does not learn of
a new architecture. Where Debian has no packages, as for musl, Debian's sources are compiled;
libcrypto, ISA-L and libcurl are left out then."""
import dataclasses
import pathlib
import shutil
import subprocess
import sys

PACKAGES = ["libcmocka0", "libcmocka-dev", "libssl3", "libssl-dev", "libxxhash0", "libxxhash-dev",
            "libzstd1", "libzstd-dev", "zlib1g", "zlib1g-dev"]
NOT_COMPILED = ["curl", "isal", "openssl"]  # options of Meson
CMOCKA_HAS = (
    "ASSERT_H INTTYPES_H SETJMP_H SIGNAL_H STDARG_H STDDEF_H STDINT_H STDIO_H STDLIB_H STRING_H "
    "STRINGS_H SYS_STAT_H SYS_TYPES_H TIME_H UNISTD_H CALLOC EXIT FPRINTF FREE LONGJMP SIGLONGJMP "
    "MALLOC MEMCPY MEMSET PRINTF SETJMP SIGNAL STRCMP STRSIGNAL CLOCK_GETTIME "
    "CLOCK_GETTIME_REALTIME STRUCT_TIMESPEC SNPRINTF VSNPRINTF").split()
PC = """Name: {module}
Description: compiled from source
Version: {version}
Libs: -L{libraries} -l{stem}
"""


@dataclasses.dataclass(frozen=True)
class Source:
    """A source package of Debian: the files of a library, and the name for pkg-config."""
    package: str
    module: str
    stem: str  # libSTEM.a
    files: tuple
    headers: tuple
    flags: tuple = ()


SOURCES = (
    Source("cmocka", "cmocka", "cmocka", ("src/cmocka.c",), ("include/cmocka*.h",),
           ("-D_GNU_SOURCE", *(f"-DHAVE_{name}=1" for name in CMOCKA_HAS))),
    Source("xxhash", "libxxhash", "xxhash", ("xxhash.c",), ("xxhash.h",)),
    Source("zlib", "zlib", "z", ("*.c",), ("zlib.h", "zconf.h"), ("-DHAVE_UNISTD_H=1",)),
    Source("libzstd", "libzstd", "zstd",
           ("lib/common/*.c", "lib/compress/*.c", "lib/decompress/*.c"), ("lib/*.h",),
           ("-DZSTD_DISABLE_ASM",)),
)


def run(*command, **options):
    """Run a command that must succeed, with stdout redirected to stderr."""
    subprocess.run([str(c) for c in command], check=True, stdout=sys.stderr, **options)


def output(*command):
    """Return what a command that must succeed prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def private_apt(folder, architecture):
    """Return options of apt-get for lists of packages in `folder`, from this machine's sources."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "state/status").touch()
    sources = folder / "sources.list"
    listed = output("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                    "Created-By: Packages")
    lines = set(listed.splitlines())
    if not architecture:  # mirrors lack sources of security updates, which tests do not need
        lines = {line for line in lines if "-security" not in line}
    kind = "deb" if architecture else "deb-src"
    sources.write_text("".join(f"{kind} {line}\n" for line in sorted(lines)))
    options = {
        "Dir::State": folder / "state", "Dir::State::status": folder / "state/status",
        "Dir::Cache": folder / "cache", "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null", "APT::Sandbox::User": "root",
    }
    if architecture:
        options |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def unpack_packages(target, folder, sysroot):
    """Unpack Debian's packages into the sysroot."""
    options = private_apt(folder / "apt", target.debian)
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    # A mirror may lack one of several lists; then the packages of the others are enough.
    subprocess.run(["apt-get", *map(str, options), "-qq", "update"], check=False,
                   stdout=sys.stderr)
    run("apt-get", *options, "-qq", "download", *PACKAGES, cwd=packages)
    for package in sorted(packages.glob("*.deb")):
        run("dpkg-deb", "-x", package, sysroot)


def compile_source(s, target, folder, sysroot):
    """Compile a library, and describe it for pkg-config."""
    source = folder / s.package
    source.mkdir(exist_ok=True)
    archive = next(folder.glob(f"{s.package}_*.orig.tar.*[!c]"))
    run("tar", "-xf", archive, "-C", source, "--strip-components=1")
    headers = [h for pattern in s.headers for h in source.glob(pattern)]
    objects = []
    for file in [f for pattern in s.files for f in sorted(source.glob(pattern))]:
        objects.append(file.with_suffix(".o"))
        run(f"{target.triple}-gcc", "-O1", "-w", "-fPIC", *s.flags,
            *{f"-I{h.parent}" for h in headers}, *target.flags, "-c", file, "-o", objects[-1])
    libraries = sysroot / "usr/lib" / target.triple
    run(f"{target.binutils or target.triple}-ar", "rcs", libraries / f"lib{s.stem}.a", *objects)
    for header in headers:
        shutil.copy(header, sysroot / "usr/include")
    # pkg-config puts the sysroot before folders outside of the sysroot.
    (libraries / f"pkgconfig/{s.module}.pc").write_text(PC.format(
        module=s.module, stem=s.stem, libraries="/usr/lib/" + target.triple,
        version=archive.name.split("_")[1].split(".orig")[0].split("+")[0]))


def compile_sources(target, folder, sysroot):
    """Compile Debian's sources for a processor without packages."""
    options = private_apt(folder / "apt", "")
    run("apt-get", *options, "-qq", "update")
    run("apt-get", *options, "-qq", "--download-only", "source", *(s.package for s in SOURCES),
        cwd=folder)
    for made in (sysroot / "usr/lib" / target.triple / "pkgconfig", sysroot / "usr/include"):
        made.mkdir(parents=True, exist_ok=True)
    for s in SOURCES:
        compile_source(s, target, folder, sysroot)


def make_sysroot(target, folder):
    """Return the folder with the libraries; make the folder if there is none."""
    sysroot = pathlib.Path(folder) / "sysroot"
    done = folder / "sysroot.done"
    if not done.exists():
        shutil.rmtree(sysroot, ignore_errors=True)
        sysroot.mkdir(parents=True)
        (unpack_packages if target.debian else compile_sources)(target, folder, sysroot)
        done.touch()
    return sysroot
