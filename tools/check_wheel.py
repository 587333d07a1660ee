#!/usr/bin/env python3
"""check_wheel.py DIR: install the wheel in DIR into a virtual environment and use the package.

The environment has no other packages, lies outside of this tree, and pip uses no network. TAP on
stdout."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import release_files
import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
METADATA = ["Name: heft", "License: ", "Requires-Python: >=3.11", "Summary: ", "Classifier: "]
FILES = ["_heft.abi3.so", "libheft-python.so.0", "bin/heft", "py.typed", "_commands.pyi",
         "licenses/NOTICE", "share/heft/profiles/gpt2.json"]
BUNDLED = ["libssl-dev", "libxxhash-dev", "libzstd-dev", "zlib1g-dev"]
WHERE = "import heft, os; print(os.path.dirname(heft.__file__))"


def complaints(*command, cwd, expect=""):
    """Run a command outside of this tree; return the output if the command fails or the output
    lacks `expect`."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD")}
    p = subprocess.run([str(c) for c in command], cwd=cwd, env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if p.returncode:
        return [f"{command[0]} ended with {p.returncode}", p.stdout]
    return [] if expect in p.stdout else [f"no {expect!r} in:", p.stdout]


def contents(wheel):
    """Return what the wheel lacks, and files of the library that have no place in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(info).decode()
    found = [f"heft/{name} is missing" for name in FILES if f"heft/{name}" not in names]
    found += [f"METADATA has no {row!r}" for row in METADATA if f"\n{row}" not in f"\n{metadata}"]
    found += [f"the licence of {package} is missing" for package in BUNDLED
              if pathlib.Path(f"/usr/share/doc/{package}/copyright").exists()
              and f"heft/licenses/{package}.txt" not in names]
    if info.replace("METADATA", "LICENSE") not in names:
        found.append("LICENSE is missing")
    return found + [f"{name} does not belong here" for name in names
                    if not name.startswith(("heft/", info.split("/")[0]))]


def linked(folder):
    """Return a complaint if the module or the command finds no library, or uses a libheft of the
    system."""
    found = []
    for path in [*folder.rglob("_heft.abi3.so"), *folder.rglob("bin/heft")]:
        if path.read_bytes()[:4] != b"\x7fELF":
            continue
        p = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
        own = re.findall(r"libheft\S* => (\S+)", p.stdout)
        inside = [pathlib.Path(lib).resolve().is_relative_to(folder.resolve()) for lib in own]
        if p.returncode or not all(inside) or not own or "not found" in p.stdout:
            found.append(f"{path.name}: {p.stdout}{p.stderr}")
    return found


def foreign(folder):
    try:
        release_files.audited(next(folder.rglob("_heft.abi3.so")).parent)
    except release_files.Problem as problem:
        return [problem]
    return []


def results(wheel, folder):
    venv = folder / "venv"
    python = venv / "bin/python"
    tag = wheel.stem.split("-", 2)[-1]
    yield f"the tag {tag} stands for every Python from 3.11", (
        [] if tag.startswith("cp311-abi3-linux_") else [tag])
    yield "the wheel has the package, metadata and license only", contents(wheel)
    yield "a virtual environment", complaints(sys.executable, "-m", "venv", "--without-pip", venv,
                                              cwd=folder)
    yield "pip installs the wheel without network", complaints(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index",
        "--disable-pip-version-check", wheel, cwd=folder)
    yield "the package is that of the environment", complaints(python, "-c", WHERE, cwd=folder,
                                                               expect=str(venv))
    yield "libheft is that of the package", linked(venv)
    yield "no other library of this machine is needed", foreign(venv)
    yield "examples/save_and_load.py runs", complaints(
        python, ROOT / "examples/save_and_load.py", cwd=folder, expect="bias f32 (2,) [0.5, -0.5]")
    yield "python -m heft runs", complaints(python, "-m", "heft", "ls", "small.safetensors",
                                            cwd=folder, expect="weight")
    yield "heft runs", complaints(venv / "bin/heft", "verify", "small.safetensors", cwd=folder)
    yield "profiles are found", complaints(
        python, "-c", "import heft; heft.verify('small.safetensors', profile='gpt2')", cwd=folder)


def main():
    wheels = list(pathlib.Path(sys.argv[1]).resolve().glob("heft-*.whl"))
    if len(wheels) != 1:
        return tap.report([("there is one wheel", [f"{len(wheels)} wheels in {sys.argv[1]}"])])
    with tempfile.TemporaryDirectory() as folder:
        return tap.report(results(wheels[0], pathlib.Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
