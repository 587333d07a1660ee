#!/usr/bin/env python3
"""check_install.py BUILD: install a build into a temporary directory and use the installed files.

Programs are built through pkg-config, with the shared and the static library, in C99, C11 and
C++17. TAP on stdout."""
import os
import pathlib
import subprocess
import sys
import tempfile

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]


def run(*command, env=None):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                       env={**os.environ, **(env or {})})
    return p.returncode, p.stdout, (p.stdout + p.stderr).splitlines()


def complaints(*command, env=None, expect=None):
    """Run a command; return the output if the command fails or the output lacks `expect`."""
    status, out, lines = run(*command, env=env)
    if status:
        return [f"{command[0]} ended with {status}", *lines]
    return [f"no {expect!r} in:", *lines] if expect and expect not in out else []


class Installed:
    """A build installed under `root`, and the environment for pkg-config."""

    def __init__(self, build, root):
        self.root = pathlib.Path(root)
        self.problem = complaints("meson", "install", "-C", build, "--no-rebuild", "--destdir",
                                  root)
        found = sorted(self.root.rglob("heft.pc"))
        self.pc = found[0] if found else self.root
        self.lib = self.pc.parent.parent
        self.env = {
            "PKG_CONFIG_PATH": str(self.pc.parent),
            "PKG_CONFIG_SYSROOT_DIR": str(root),
            "LD_LIBRARY_PATH": str(self.lib),
        }

    def flags(self, *what):
        return run("pkg-config", *what, "heft", env=self.env)[1].split()

    def find(self, name):
        return [] if list(self.root.rglob(name)) else [f"{name} is not installed"]

    def build(self, compiler, source, to, *more, static=False):
        """Compile a source against the installed library and run the program."""
        libs = self.flags("--libs")
        if static:
            libs = [
                str(self.lib / "libheft.a") if f == "-lheft" else f
                for f in self.flags("--static", "--libs")
            ]
        return complaints(*compiler, *STRICT, *self.flags("--cflags"), source, "-o", to, *libs,
                          *more)


def lists_the_model(program, model, env):
    return complaints(program, model, env=env,
                      expect="blocks.0.attention.q_proj.weight\tf16\t[64, 64]\t8192")


def results(build, scratch):
    installed = Installed(build, scratch / "root")
    yield "meson install", installed.problem
    if installed.problem:
        return
    for name in [
            "heft.h", "check.h", "companion.h", "write.h", "heft_ext.h", "dtypes.h", "libheft.so",
            "libheft.so.0", "libheft.a", "bin/heft"
    ]:
        yield f"{name} is installed", installed.find(name)
    yield "pkg-config knows the version", complaints("pkg-config", "--exact-version=0.1.0", "heft",
                                                     env=installed.env)

    model, program = scratch / "model.safetensors", scratch / "ls"
    made = complaints(sys.executable, ROOT / "tools/make_model.py", model, "--layers", "1",
                      "--hidden", "64")
    yield "a model to list", made
    example, c11 = ROOT / "examples/ls.c", ["cc", "-std=c11"]
    yield "examples/ls.c compiles against the shared library", installed.build(
        c11, example, program)
    yield "and lists the model", lists_the_model(program, model, installed.env)
    yield "examples/ls.c compiles against the static library", installed.build(
        c11, example, program, static=True)
    yield "and lists the model without the shared one", lists_the_model(program, model, {})
    for source, compiler in [("header.c", ["cc", "-std=c99"]), ("header.cc", ["c++",
                                                                              "-std=c++17"])]:
        built = installed.build(compiler, ROOT / "tests" / source, program)
        yield f"{source} compiles and runs", built or complaints(program, env=installed.env)
    freestanding = ["cc", "-std=c11", "-ffreestanding", "-fsyntax-only", "-I", ROOT / "include"]
    yield "the headers need no C library", complaints(*freestanding, ROOT / "tests/header.c")
    heft = next(installed.root.rglob("bin/heft"))
    yield "the installed command runs", complaints(heft, "--version", env=installed.env,
                                                   expect="0.1.0")
    yield from profiles(installed, heft, model, scratch)


def profiles(installed, heft, model, scratch):
    """Check that all profiles are installed and found from any directory."""
    names = sorted(p.stem for p in (ROOT / "share/heft/profiles").glob("*.json"))
    env = {"HEFT_PROFILES": "", "HEFT": str(heft)}
    for name in names:
        yield f"the profile {name} is installed", installed.find(f"share/heft/profiles/{name}.json")
        status, out, lines = run("sh", "-c", 'cd "$1" && "$HEFT" verify --json --profile "$2" "$3"',
                                 "sh", scratch, name, model, env=env)
        found = status == 1 and '"rule": "profile/tensor"' in out
        yield f"the installed command finds {name}", [] if found else [
            f"verify ended with {status}", *lines
        ]
    _, _, lines = run(heft, "verify", "--profile", "none-such", model, env=env)
    listed = any(f"(available: {', '.join(names)})" in line for line in lines)
    yield "and lists them all when it is asked for another", [] if listed else lines


def main():
    with tempfile.TemporaryDirectory() as scratch:
        return tap.report(results(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(scratch)))


sys.exit(main())
