#!/usr/bin/env python3
"""Builds heft.exe and heft.dll with mingw-w64, and tests them under Wine.

Usage: windows.py [--compile | --build] BUILD NATIVE

BUILD is the folder of the build for Windows, NATIVE the folder of a finished build for this
machine.  --build builds without tests; --compile only compiles the files that call the system, and
needs neither libraries nor Wine.  TAP goes to stdout, one line for each test, and the counts
go to build/platforms/windows.json."""

import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER = "x86_64-w64-mingw32-gcc-posix"
BATCH = 200  # files for each process: Wine starts slowly
LISTED = 12  # samples of each format whose listing and hash are compared
RENAMED = ("regcomp", "regerror", "regexec", "regfree")
CROSS = """[binaries]
c = ['ccache', '{compiler}']
ar = 'x86_64-w64-mingw32-gcc-ar'
strip = 'x86_64-w64-mingw32-strip'
exe_wrapper = 'wine'

[host_machine]
system = 'windows'
cpu_family = 'x86_64'
cpu = 'x86_64'
endian = 'little'

[built-in options]
c_args = ['-D_WIN32_WINNT=0x0A00', '-D_FILE_OFFSET_BITS=64', '-isystem', '{deps}/include']
c_link_args = ['-static', '-L{deps}/lib']
"""
# Messages of a build without optional libraries, in place of results.
LACKS = re.compile(r"this build (cannot|has no|lacks)|not computed|cannot be (checked|computed)"
                   r"|unchecked|no codec|no digest")


def run(*command, **options):
    """Runs a command that must succeed."""
    subprocess.run([str(c) for c in command], check=True, **options)


# ---- building ----


def make_regex(deps):
    """Makes libregex.a and regex.h from gnulib: the C library of Windows has no expressions."""
    if (deps / "lib/libregex.a").exists():
        return
    source = deps / "gnulib"
    shutil.rmtree(source, ignore_errors=True)
    deps.mkdir(parents=True, exist_ok=True)
    run("gnulib-tool", "--create-testdir", f"--dir={source}", "--lgpl=2", "--without-tests",
        "regex", stdout=subprocess.DEVNULL)
    run("./configure", "--host=x86_64-w64-mingw32", f"CC={COMPILER}", cwd=source,
        stdout=subprocess.DEVNULL)
    run("make", "-j2", cwd=source, stdout=subprocess.DEVNULL)
    for folder in ("include", "lib"):
        (deps / folder).mkdir(exist_ok=True)
    header = (source / "gllib/regex.h").read_text(encoding="utf-8")
    names = "".join(f"#define {name} rpl_{name}\n" for name in RENAMED)
    (deps / "include/regex.h").write_text(f"#define _REGEX_LARGE_OFFSETS 1\n{names}{header}",
                                          encoding="utf-8")
    shutil.copy(source / "gllib/libgnu.a", deps / "lib/libregex.a")


def deps_of(folder):
    """Returns the folder of the libraries for a build."""
    return folder.parent / (folder.name + "-deps")


def configure(folder, *options):
    """Configures the build."""
    deps = deps_of(folder)
    deps.mkdir(parents=True, exist_ok=True)
    cross = deps / "cross.ini"
    text = CROSS.format(compiler=COMPILER, deps=deps)
    if not shutil.which("ccache"):
        text = text.replace("'ccache', ", "")
    cross.write_text(text, encoding="utf-8")
    if not (folder / "build.ninja").exists():
        run("meson", "setup", folder, "--cross-file", cross, "-Dexamples=false", *options, cwd=ROOT,
            stdout=sys.stderr)


def build(folder):
    """Configures and builds."""
    make_regex(deps_of(folder))
    configure(folder)
    run("ninja", "-C", folder, stdout=sys.stderr)


def compile_callers(folder):
    """Compiles the port and the command, without the files that need <regex.h>."""
    without = tuple(f"{p.name}.obj" for p in (ROOT / "cli").rglob("*.c")
                    if "#include <regex.h>" in p.read_text(encoding="utf-8"))
    configure(folder, "-Dauto_features=disabled", "-Doptimization=0")
    listed = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True, text=True,
                            capture_output=True).stdout
    objects = re.findall(r"^((?:libheft-(?:port|posix|params)\.a|heft\.exe)\.p/.*\.obj):", listed,
                         re.MULTILINE)
    run("ninja", "-C", folder, *(o for o in objects if not o.endswith(without)),
        stdout=sys.stderr)


# ---- results ----


class Suite:
    """The tests of one kind: prints and counts them."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0

    def add(self, test, difference=None, skipped=None):
        """Counts a test; a text in `difference` is a failure."""
        number = self.passed + self.failed + self.skipped + 1
        verdict = "not ok" if difference else "ok"
        why = f" # SKIP {skipped}" if skipped and not difference else ""
        for line in (difference or "").splitlines()[:20]:
            print(f"# {line}")
        print(f"{verdict} {number} - {self.name}: {test}{why}", flush=True)
        self.failed += bool(difference)
        self.skipped += bool(not difference and skipped)
        self.passed += not difference and not skipped

    def counts(self):
        """Returns the suite's row of windows.json."""
        return {"name": self.name, "passed": self.passed, "failed": self.failed,
                "skipped": self.skipped}


# ---- the command's tests ----


def read_skipped():
    """Returns the cases that cannot pass under Wine, each with the reason."""
    rows = (ROOT / "tools/windows.tsv").read_text(encoding="utf-8").splitlines()
    return dict(row.split("\t") for row in rows if row and not row.startswith("#"))


def test_command(wrapper):
    """Runs the cases of tests/cli.  A case of windows.tsv that passes is a failure, too."""
    suite, known, details = Suite("command"), read_skipped(), []
    child = subprocess.Popen([sys.executable, ROOT / "tests/cli/run.py"], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, errors="replace", stdin=subprocess.DEVNULL,
                             env={**os.environ, "HEFT": str(wrapper),
                                  "HEFT_UNTRACED": "strace shows the system calls of Wine"})
    for line in child.stdout:
        verdict = re.match(r"(ok|not ok) \d+ - (\S+)(?: # SKIP (.*))?", line)
        if not verdict:
            details.append(line.removeprefix("# ").rstrip())
            continue
        passed, case, skipped = verdict[1] == "ok", verdict[2], verdict[3]
        reason = known.pop(case, None)
        if reason and passed and not skipped:
            suite.add(case, f"passes, but tools/windows.tsv says: {reason}")
        else:
            suite.add(case, None if passed or reason else "\n".join(details) or "differs",
                      reason or skipped)
        details = []
    child.wait()
    for case in known:
        suite.add(case, "is in tools/windows.tsv, but not in tests/cli")
    return suite


# ---- samples ----


def both(wrapper, native, folder, *arguments):
    """Returns exit code and output of the command, on Windows and here."""
    answers = []
    for command in (wrapper, native):
        done = subprocess.run([command, *arguments], cwd=folder, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL)
        answers.append((done.returncode, (done.stdout + done.stderr).decode(errors="replace")))
    return answers


def by_file(text, files):
    """Returns the lines about each file."""
    found, last = {name: [] for name in files}, None
    for line in text.splitlines():
        name = line.removeprefix("heft: ").split(": ", 1)[0]
        last = name if name in found else last
        if last:
            found[last].append(line)
    return found


def lines_of(answer):
    """Returns the lines of an answer: they are a list, or follow an exit code."""
    return answer if isinstance(answer, list) else answer[1].splitlines()


def judge(suite, test, windows, here):
    """Compares two answers; an answer for want of a library is a skipped test."""
    if windows == here:
        suite.add(test)
    elif any(LACKS.search(line) for line in set(lines_of(windows)) - set(lines_of(here))):
        suite.add(test, skipped="needs a library that the build for Windows lacks")
    else:
        suite.add(test, f"Windows: {windows}\nhere:    {here}")


def test_samples(wrapper, native):
    """Compares the findings of `verify` about every sample, and listings and hashes of some."""
    suite = Suite("samples")
    folder = native / "tests/samples"
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    for i in range(0, len(files), BATCH):
        batch = files[i:i + BATCH]
        windows, here = both(wrapper, native / "heft", folder, "verify", *batch)
        windows, here = by_file(windows[1], batch), by_file(here[1], batch)
        for name in batch:
            judge(suite, f"verify {name}", windows[name], here[name])
    formats = sorted(p.name for p in folder.iterdir() if p.is_dir())
    for name in formats:
        some = [f for f in files if f.startswith(name + "/")]
        for file in some[::max(1, len(some) // LISTED)]:
            for arguments in (["ls", "--json", file], ["hash", file]):
                windows, here = both(wrapper, native / "heft", folder, *arguments)
                judge(suite, " ".join(arguments), windows, here)
    return suite


def test_conversions(wrapper, native, folder):
    """Converts a model to every format, here and on Windows, and compares the files."""
    suite, heft = Suite("conversions"), native / "heft"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(sys.executable, ROOT / "tests/cli/samples.py", folder)
    table = json.loads(subprocess.run([heft, "formats", "--json"], check=True,
                                      capture_output=True).stdout)
    names = [f["name"] for f in (table["formats"] if isinstance(table, dict) else table)
             if f.get("write", f.get("writes", True))]
    for name in names:
        arguments = ["convert", "--allow-loss", "--to", name, "small.safetensors"]
        windows, here = both(wrapper, heft, folder, *arguments, "out")
        first = (folder / "out").read_bytes() if (folder / "out").exists() else b""
        (folder / "out").unlink(missing_ok=True)
        if windows[0] == 0:
            run(heft, *arguments, "--force", "out", cwd=folder, stderr=subprocess.DEVNULL)
            same = first == (folder / "out").read_bytes()
            suite.add(f"to {name}", None if same else "the files differ")
        else:
            difference = str(windows) if windows[1] != here[1] else None
            suite.add(f"to {name}", difference, "is not written")
        (folder / "out").unlink(missing_ok=True)
    return suite


# ---- paths ----


def test_paths(wrapper, folder):
    """Long paths, names that Windows reserves, names beyond ASCII."""
    suite = Suite("paths")

    def expect(test, arguments, code):
        """Expects an exit code; a refused name is refused for that reason."""
        done = subprocess.run([wrapper, *arguments], cwd=folder, capture_output=True, check=False,
                              stdin=subprocess.DEVNULL)
        text = (done.stdout + done.stderr).decode(errors="replace")
        is_good = done.returncode == code and (code == 0 or "Windows reserves" in text)
        suite.add(test, None if is_good else f"exit {done.returncode}: {text}")

    deep = "/".join(["a" * 100] * 4)
    (folder / deep).mkdir(parents=True)
    expect("write a path of 400 characters", ["convert", "small.safetensors", f"{deep}/m.zt"], 0)
    expect("read a path of 400 characters", ["verify", f"{deep}/m.zt"], 0)
    expect("edit a path of 400 characters", ["edit", "--set", "a:i64=1", f"{deep}/m.zt"], 0)
    backslashes = (deep + "/m.zt").replace("/", "\\")
    expect("backslashes separate folders", ["verify", backslashes], 0)
    expect("write with backslashes", ["convert", "small.safetensors", f".\\{'a' * 100}\\n.zt"], 0)
    for name in ("modèle.zt", "模型.zt", "🦙.zt"):
        expect(f"write {name}", ["convert", "small.safetensors", name], 0)
        suite.add(f"{name} has this name", None if (folder / name).exists() else "is missing")
    for name in ("a:b.zt", "a?.zt", "a*.zt", 'a".zt', "a<b>.zt", "a|b.zt", "CON.zt", "nul.zt",
                 "com1.zt", "aux/m.zt"):
        expect(f"refuse to write {name}", ["convert", "--to", "ztensor", "small.safetensors", name],
               4)
        expect(f"refuse to read {name}", ["verify", name], 4)
    for name in ("m.zt.", "m.zt "):
        expect(f"refuse '{name}'", ["convert", "--to", "ztensor", "small.safetensors", name], 4)
    index = folder / "r.safetensors.index.json"
    for name in ("CON.safetensors", "a:b.safetensors", "nul.safetensors"):
        index.write_text(json.dumps({"metadata": {}, "weight_map": {"w": name}}), encoding="utf-8")
        expect(f"open no shard {name}", ["verify", index.name], 4)
    left = [p.name for p in folder.iterdir() if p.name.endswith((".heft-new", ".heft-old"))]
    suite.add("no temporary file is left", ", ".join(left))
    return suite


# ---- the whole ----


def version(*command):
    """Returns the first line that a program prints about its version."""
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout.splitlines()[0].strip()


def write_results(native, suites):
    """Writes the counts for docs/platforms.md."""
    out = native / "platforms/windows.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({
        "target": "Windows, x86-64", "compiler": version(COMPILER, "--version"),
        "runner": version("wine", "--version"), "suites": [s.counts() for s in suites],
        "date": datetime.date.today().isoformat(),
        "notes": "without OpenSSL, xxHash, ISA-L and zstd; no pager, no sandbox",
    }, indent=2) + "\n", encoding="utf-8")
    for suite in suites:
        print("# {name}: {passed} passed, {failed} failed, {skipped} skipped"
              .format(**suite.counts()))


def main():
    """Builds and, without --build, tests."""
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder, native = (pathlib.Path(a).resolve() for a in arguments)
    if "--compile" in sys.argv:
        compile_callers(folder)
        return 0
    build(folder)
    if "--build" in sys.argv:
        return 0
    os.environ.update(WINEPREFIX=str(folder / "wine"), WINEDEBUG="-all")
    run("wineboot", "--init", stderr=subprocess.DEVNULL)
    wrapper = folder / "heft-in-wine"
    wrapper.write_text(f'#!/bin/sh\nexec wine "{folder}/heft.exe" "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)
    suites = [
        test_conversions(wrapper, native, folder / "tried"), test_paths(wrapper, folder / "tried"),
        test_samples(wrapper, native), test_command(wrapper)]
    print(f"1..{sum(s.passed + s.failed + s.skipped for s in suites)}")
    write_results(native, suites)
    return int(any(s.failed for s in suites))


if __name__ == "__main__":
    sys.exit(main())
