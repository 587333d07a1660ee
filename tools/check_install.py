#!/usr/bin/env python3
"""check_install.py BUILD: install a build into a temporary directory and use the installed files.

Programs are built through pkg-config, with the shared and the static library, in C99, C11 and
C++17. TAP on stdout."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import release
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = release.agreed_version(ROOT)
PLACES = [
    "bash-completion/completions/heft", "zsh/site-functions/_heft",
    "fish/vendor_completions.d/heft.fish", "heft/magic", "man/man1/heft.1",
    "man/man1/heft-convert.1", "man/man3/heft_file_open.3", "man/man3/libheft.3",
    "man/man7/heft-formats.7", "doc/heft/README.md", "doc/heft/docs/cli.md",
    "doc/heft/docs/formats/mag.md", "doc/heft/LICENSE", "doc/heft/NOTICE", "doc/heft/CHANGELOG.md"
]
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


def compiles_each_header(scratch):
    """Compile each public header alone, with the other library of C++."""
    source = scratch / "one_header.cc"
    faults = []
    for header in sorted((ROOT / "include/heft").glob("*.h")):
        source.write_text("#include <vector>\n#ifndef _LIBCPP_VERSION\n#error not libc++\n#endif\n"
                          f"#include <heft/{header.name}>\n")
        faults += complaints("clang++", "-std=c++17", "-stdlib=libc++", *STRICT, "-fsyntax-only",
                             "-I", ROOT / "include", source)
    return faults


def results(build, scratch):
    installed = Installed(build, scratch / "root")
    yield "meson install", installed.problem
    if installed.problem:
        return
    for name in [
            *sorted({h.name for h in (ROOT / "include/heft").glob("*.h")} - {"private.h"}),
            "libheft.so", "libheft.so.0", "libheft.a", "bin/heft"
    ]:
        yield f"{name} is installed", installed.find(name)
    yield "private.h is not installed", [str(p) for p in installed.root.rglob("private.h")]
    yield "pkg-config knows the version", complaints("pkg-config", f"--exact-version={VERSION}",
                                                     "heft", env=installed.env)

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
    if shutil.which("clang++"):
        yield "each public header compiles with libc++", compiles_each_header(scratch)
    freestanding = ["cc", "-std=c11", "-ffreestanding", "-fsyntax-only", "-I", ROOT / "include"]
    yield "the headers need no C library", complaints(*freestanding, ROOT / "tests/header.c")
    heft = next(installed.root.rglob("bin/heft"))
    yield "the installed command runs", complaints(heft, "--version", env=installed.env,
                                                   expect=VERSION)
    yield from profiles(installed, heft, model, scratch)
    for path in PLACES:
        yield f"share/{path} is installed", [] if list(installed.root.rglob(
            f"share/{path}")) else ["it is missing"]
    yield from completion(installed)
    if shutil.which("cmake"):
        yield from cmake(installed, model, scratch)
    if shutil.which("man"):
        pages = next(installed.root.rglob("share/man"))
        for section, page, text in [(1, "heft-convert", "--cast"), (1, "heft", "Landlock"),
                                    (3, "heft_file_open", "heft_open_options"),
                                    (3, "heft_tensor_find", "HEFT_NONE"),
                                    (7, "heft-formats", "Burnpack")]:
            yield f"man {section} {page} has text", complaints(
                "man", "-M", pages, str(section), page, expect=text,
                env={"LC_ALL": "C.UTF-8", "MANPAGER": "cat"})


def completion(installed):
    """Let each shell load the installed completion."""
    folder = next(installed.root.rglob("bash-completion"))
    bash = (f"source /usr/share/bash-completion/bash_completion; "
            f"BASH_COMPLETION_USER_DIR='{folder}' _completion_loader heft; complete -p heft")
    if pathlib.Path("/usr/share/bash-completion/bash_completion").exists():
        yield "bash-completion finds the completion", complaints(
            "bash", "--norc", "-c", bash, expect="-F _heft heft",
            env={"XDG_DATA_DIRS": str(folder.parent)})
    zsh = next(installed.root.rglob("zsh/site-functions"))
    if shutil.which("zsh"):
        yield "zsh finds the completion", complaints(
            "zsh", "-f", "-c", f"fpath=('{zsh}' $fpath); autoload -Uz compinit; compinit -u -D; "
            "print ${_comps[heft]}", expect="_heft")
    if shutil.which("fish"):
        fish = next(installed.root.rglob("vendor_completions.d"))
        path = f"{fish.parents[2] / 'bin'}:/usr/bin:/bin"
        yield "fish loads the completion", complaints(
            "fish", "--no-config", "-c",
            f"set fish_complete_path '{fish}'; complete -C 'heft conv'", expect="convert",
            env={**installed.env, "PATH": path})


CMAKE = """cmake_minimum_required(VERSION 3.13)
project(test C)
find_package(heft %s REQUIRED)
add_executable(shared ${SOURCE})
target_link_libraries(shared PRIVATE heft::heft)
add_executable(static ${SOURCE})
target_link_libraries(static PRIVATE heft::static)
"""


def cmake(installed, model, scratch):
    """Build a project of CMake against the installed library, moved to a second folder."""
    moved = scratch / "moved"
    shutil.copytree(installed.root, moved, symlinks=True)
    package = next(moved.rglob("heftConfig.cmake")).parent
    for version, is_found in [("0.1", True), ("0.1.0 EXACT", True), ("", True), ("0.2", False),
                              ("0.0", False), ("1.0", False)]:
        project = scratch / f"cmake-{version.split(' ')[0]}-{len(version)}"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(CMAKE % version)
        made = complaints("cmake", "-G", "Ninja", "-S", project, "-B", project / "build",
                          f"-Dheft_DIR={package}", f"-DSOURCE={ROOT / 'examples/ls.c'}")
        yield f"cmake finds heft {version}" if is_found else f"cmake finds no heft {version}", (
            made if is_found else [] if made else ["it is found"])
    project = scratch / "cmake-0.1-3"
    yield "cmake builds the project", complaints("cmake", "--build", project / "build")
    for kind in ("shared", "static"):
        yield f"the program with the {kind} library lists the model", lists_the_model(
            project / "build" / kind, model, {})
    needed = run("ldd", project / "build/static")[1]
    yield "the static program needs no libheft.so", [needed] if "libheft" in needed else []


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
