#!/usr/bin/env python3
"""check_python.py BUILD ARG...: run pytest with ARG... on the Python package of a build directory.

The package is installed below the build directory. If the build uses the address sanitizer, its
library is loaded first. Samples are those of build/tests/samples and ../shared/fixtures."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = [ROOT / "build/tests/samples", ROOT.parent / "shared/fixtures"]


def option(build, name):
    p = subprocess.run(["meson", "introspect", "--buildoptions", build], check=True,
                       stdout=subprocess.PIPE)
    return next(o["value"] for o in json.loads(p.stdout) if o["name"] == name)


def install(build):
    """Install a build below its directory; return the folder with the package."""
    image = build / "image"
    subprocess.run(["meson", "install", "-C", build, "--quiet", "--no-rebuild", "--destdir", image],
                   check=True)
    return next(image.rglob("_heft.abi3.so")).parent.parent


def sanitizer():
    """Return variables that load the library of the address sanitizer into Python."""
    name = f"libclang_rt.asan-{os.uname().machine}.so"
    p = subprocess.run(["clang", f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE,
                       text=True)
    # The interpreter keeps memory until the end of the process.
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return {"LD_PRELOAD": p.stdout.strip(), "ASAN_OPTIONS": options}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    env = {**os.environ, "PYTHONPATH": str(install(build)), "PYTHONDONTWRITEBYTECODE": "1",
           "HEFT_SAMPLES": ":".join(str(path) for path in SAMPLES if path.is_dir())}
    if "address" in option(build, "b_sanitize"):
        env.update(sanitizer())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[2:]]
    return subprocess.run(command, env=env, cwd=ROOT, check=False).returncode


sys.exit(main())
