#!/usr/bin/env python3
"""machines.py [--build] [--quick | --again] TARGET NATIVE: build Heft for a processor, or for
another C library, and run the tests.
machines.py --list: print the targets.

The compilers are Debian's cross compilers and musl-gcc, and qemu-user runs the programs for other
processors. The libraries come from tools/machine_libraries.py.

NATIVE is the folder of a finished build for this machine, with samples. The tests of the suites
unit, engine and formats run in the build for TARGET, and every sample is read and converted by both
builds (tests/py/check_same.py). --build only builds. --quick tests a part that takes a minute;
--again runs only the tests that did not pass in the last run. TAP goes to stdout, and the counts to
NATIVE/platforms/TARGET.json, for tools/platforms.py. Exit status 77 if programs are missing."""
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from machine_libraries import NOT_COMPILED, make_sysroot, output, run

ROOT = pathlib.Path(__file__).resolve().parent.parent
KNOWN = ROOT / "tools/machines.tsv"
SUITES = ("unit", "engine", "formats")
# Programs that Python starts without qemu.
NATIVE_ONLY = {"damage"}
QUICK = ["blake3", "cast", "cursor", "crc", "msgpack", "siphash", "sized", "views",
         "arrays", "dtypes", "identity", "writer"]
QUICK_SAMPLES = 6  # in each folder of samples


@dataclasses.dataclass(frozen=True)
class Target:
    """A processor, or another C library; `debian` is the name of the packages, or empty where
    Debian 12 has none. Programs run natively without qemu."""
    triple: str
    qemu: str
    family: str
    bits: int
    endian: str
    debian: str = ""
    multiarch: str = ""
    binutils: str = ""  # the prefix of ar and strip, if not the triple
    title: str = ""  # in the table, if not the target's name
    flags: tuple = ()

    def emulator(self):
        """Return the command that runs programs. The emulated loader would first find C libraries
        for i386 of this machine, whose version differs from the loader's."""
        return [self.qemu, "-L", f"/usr/{self.triple}",
                "-E", f"LD_LIBRARY_PATH=/usr/{self.triple}/lib"] if self.qemu else []


TARGETS = {
    "s390x": Target("s390x-linux-gnu", "qemu-s390x", "s390x", 64, "big", "s390x"),
    "powerpc": Target("powerpc-linux-gnu", "qemu-ppc", "ppc", 32, "big"),
    "i386": Target("i686-linux-gnu", "qemu-i386", "x86", 32, "little", "i386", "i386-linux-gnu"),
    "armhf": Target("arm-linux-gnueabihf", "qemu-arm", "arm", 32, "little", "armhf"),
    "aarch64": Target("aarch64-linux-gnu", "qemu-aarch64", "aarch64", 64, "little", "arm64"),
    "riscv64": Target("riscv64-linux-gnu", "qemu-riscv64", "riscv64", 64, "little"),
    # musl has no headers of the kernel.
    "musl": Target("x86_64-linux-musl", "", "x86_64", 64, "little", binutils="x86_64-linux-gnu",
                   title="x86-64, musl",
                   flags=("-idirafter", "/usr/include",
                          "-idirafter", "/usr/include/x86_64-linux-gnu")),
}
CROSS = """[binaries]
c = [{ccache}'{triple}-gcc']
ar = '{binutils}-gcc-ar'
strip = '{binutils}-strip'
pkgconfig = 'pkg-config'
{wrapper}
[properties]
needs_exe_wrapper = {wrapped}
sys_root = '{sysroot}'
pkg_config_libdir = '{libraries}/pkgconfig'

[built-in options]
c_args = {flags}
c_link_args = ['-L{libraries}', '-Wl,-rpath,{libraries}', '-Wl,-rpath-link,{libraries}']

[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = '{endian}'
"""


# ---- building -----------------------------------------------------------------------------------

def write_cross_file(target, folder, sysroot):
    multiarch = target.multiarch or target.triple
    includes = sysroot / "usr/include"
    text = CROSS.format(**dataclasses.asdict(target) | {
        "ccache": "'ccache', " if shutil.which("ccache") else "",
        "binutils": target.binutils or target.triple,
        "wrapper": f"exe_wrapper = {target.emulator()}\n" if target.qemu else "",
        "wrapped": str(bool(target.qemu)).lower(),
        "flags": ["-isystem", f"{includes}", "-isystem", f"{includes / multiarch}", *target.flags],
        "sysroot": sysroot, "libraries": sysroot / "usr/lib" / multiarch})
    cross = folder / "cross.ini"
    if not cross.exists() or cross.read_text() != text:
        cross.write_text(text)
    return cross


def build(target, folder, quick):
    """Configure and build; return the folder of the build."""
    cross = write_cross_file(target, folder, make_sysroot(target, folder))
    at = folder / ("quick" if quick else "build")
    if not (at / "build.ninja").exists():
        # Compilers take several times as long to optimise.
        more = ["-Doptimization=0"] if quick else []
        # Otherwise Meson finds the headers of this machine.
        more += [] if target.debian else [f"-D{name}=disabled" for name in NOT_COMPILED]
        run("meson", "setup", at, "--cross-file", cross, "-Dexamples=false", *more, cwd=ROOT)
    jobs = os.environ.get("JOBS", str(os.cpu_count()))
    programs = ["tests/heft-commands", *[f"tests/test_{n}" for n in QUICK]]
    run("ninja", "-C", at, "-j", jobs, *(programs if quick else []))
    return at


# ---- testing ------------------------------------------------------------------------------------

class Counts:
    """Print results as TAP, and count by suite."""

    def __init__(self, known):
        self.known, self.suites, self.printed = known, {}, 0

    def add(self, suite, title, passed, skipped="", lines=()):
        reason = self.known.pop(title, "")
        if reason and passed and not skipped:
            passed, lines = False, [f"passes, but {KNOWN.name} says: {reason}"]
        elif reason:
            passed, skipped = True, reason
        kind = "failed" if not passed else "skipped" if skipped else "passed"
        counts = self.suites.setdefault(suite, {"passed": 0, "failed": 0, "skipped": 0})
        counts[kind] += 1
        self.printed += 1
        for line in lines if not passed else ():
            print("#", line)
        why = f" # SKIP {skipped}" if skipped and passed else ""
        print(f"{'ok' if passed else 'not ok'} {self.printed} - {suite}: {title}{why}", flush=True)


def read_known(name):
    """Return {title: reason} of the tests that cannot pass in the emulation of a target."""
    rows = [line.split("\t") for line in KNOWN.read_text().splitlines()[1:]]
    return {title: reason for target, title, reason in rows if target in (name, "*")}


TAP = re.compile(r"(ok|not ok) \d+ (?:- |# SKIP )(.*?)(?: # SKIP ?(.*))?$")


def add_tap(counts, suite, name, record):
    """Count a test of Meson: each line of TAP, or the whole test.

    cmocka calls a skipped test "not ok N # SKIP TITLE", which Meson takes for a failure."""
    lines = (record.get("stdout") or "").splitlines()
    tests = [m for m in map(TAP.match, lines) if m]
    failed = [m for m in tests if m[1] != "ok" and "# SKIP" not in m[0]]
    for m in tests:
        skipped = (m[3] or "the test skips itself") if "# SKIP" in m[0] else ""
        counts.add(suite, f"{name}: {m[2]}", m not in failed, skipped)
    ended_well = record["result"] in ("OK", "SKIP") or (tests and record.get("returncode") == 0)
    if not ended_well and not failed or not tests:
        errors = lines[-5:] + (record.get("stderr") or "").splitlines()[-15:]
        counts.add(suite, name, ended_well,
                   "" if record["result"] != "SKIP" else "the test skips itself", errors)
    elif failed:
        for line in (record.get("stderr") or "").splitlines()[:60]:
            print("#  ", line)


def read_log(at, log):
    """Return the records of a run of Meson's tests, by name: "heft:engine+valgrind / writer"."""
    lines = (at / f"meson-logs/{log}.json").read_text(encoding="utf-8").splitlines()
    return {record["name"]: record for record in map(json.loads, lines)}


def run_tests(at, counts, only, again):
    """Run Meson's tests, and count; `again`: run the tests that did not pass in the last run, and
    count the others as in that run."""
    suites = [w for s in SUITES for w in ("--suite", s)]
    listed = output("meson", "test", "-C", str(at), "--no-rebuild", "--list", *suites)
    names = [line.split(" / ")[-1].strip() for line in listed.splitlines() if " / " in line]
    chosen = [n for n in names if n not in NATIVE_ONLY and (not only or n in only)]
    records, log = {}, "testlog"
    if again:
        records, log = read_log(at, "testlog"), "again"
        passed = {n.split(" / ", 1)[1] for n, r in records.items() if r["result"] in ("OK", "SKIP")}
        chosen = [n for n in chosen if n not in passed]
    if chosen:  # without names Meson would run every test
        # Suites are given again: suites have tests of the same name.
        subprocess.run(["meson", "test", "-C", str(at), "--no-rebuild", "-t", "4", "--logbase", log,
                        *suites, *chosen],
                       check=False, stdout=sys.stderr, env={**os.environ, "HEFT_TEST_FEWER": "1"})
        records |= read_log(at, log)
    for title, record in records.items():
        where, name = title.split(" / ", 1)
        add_tap(counts, re.search("|".join(SUITES), where)[0], name, record)


def compare(target, at, native, counts, quick):
    """Compare the results of both builds for every sample."""
    wrapper = " ".join([*target.emulator(), f"{at}/tests/heft-commands"])
    samples = [native / "tests/samples"]
    samples += [] if quick else [p for p in [ROOT.parent / "shared/fixtures"] if p.exists()]
    child = subprocess.run(
        [sys.executable, ROOT / "tests/py/check_same.py", native / "tests/heft-commands", wrapper,
         str(QUICK_SAMPLES if quick else 0), *samples],
        check=False, stdout=subprocess.PIPE, text=True)
    add_tap(counts, "samples", "same",
            {"stdout": child.stdout, "result": "FAIL" if child.returncode else "OK"})
    for line in child.stdout.splitlines():
        if line.startswith("#"):
            print(line)


def features(target, at):
    """Return a description of the build."""
    text = (at / "build.ninja").read_text()
    lacks = [name for name in ("ISAL", "OPENSSL", "XXHASH", "ZLIB", "ZSTD")
             if f"-DHEFT_HAVE_{name}" not in text]
    return f"{target.bits} bits, {target.endian}-endian" + (
        "; without " + ", ".join(lacks).lower() if lacks else "")


def write_counts(name, target, at, native, counts):
    out = native / "platforms" / f"{name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({
        "target": f"Linux, {target.title or name}",
        "compiler": output(f"{target.triple}-gcc", "--version").splitlines()[0],
        "runner": output(target.qemu, "--version").splitlines()[0] if target.qemu else "-",
        "suites": [{"name": suite, **found} for suite, found in counts.suites.items()],
        "date": datetime.date.today().isoformat(), "notes": features(target, at)
    }, indent=2) + "\n")


def main():
    if sys.argv[1:] == ["--list"]:
        print(*TARGETS, sep="\n")
        return 0
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    quick, only_build = "--quick" in sys.argv, "--build" in sys.argv
    name, native = words[0], pathlib.Path(words[1]).resolve()
    target = TARGETS[name]
    programs = filter(None, (target.qemu, f"{target.triple}-gcc"))
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        print("1..0 # SKIP", *missing, "is missing")
        return 77
    at = build(target, native.parent / "build-machines" / name, quick)
    if only_build:
        return 0
    counts = Counts(read_known(name))
    run_tests(at, counts, QUICK if quick else [], "--again" in sys.argv)
    compare(target, at, native, counts, quick)
    print(f"1..{counts.printed}")
    if not quick:
        write_counts(name, target, at, native, counts)
    return int(any(c["failed"] for c in counts.suites.values()))


if __name__ == "__main__":
    sys.exit(main())
