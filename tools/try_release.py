#!/usr/bin/env python3
"""try_release.py FOLDER [KIND...]: install and use each file of a release where nothing else is.

FOLDER has what release_files.py has made. Each kind gets a new Debian of its own below
FOLDER/../try, made by mmdebstrap, with the packages of its row; the static program gets an empty
folder. What runs there has no network, except apt. TAP on stdout."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tap
import try_image

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
USE = """ls model.safetensors >/dev/null
{0} convert --force model.safetensors model.gguf
{0} verify model.gguf
{0} diff model.safetensors model.gguf"""
ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" /bin/sh -euc "$1"'
PROGRAM = """#include "heft.h"
#include <stdio.h>
int main(void)
{
    heft_file *f;
    if (heft_file_open(&f, "model.safetensors", NULL, NULL))
        return 1;
    printf("%u tensors\\n", (unsigned)heft_tensor_count(f));
    heft_file_close(f);
    return 0;
}
"""
LOAD = "import heft; print(len(heft.load('model.gguf', framework=None)))"
# Packages of Debian in the clean system, the pattern of the files, what needs a network, and the
# rest.
KINDS = {
    "source": (["gcc", "libc6-dev", "meson", "ninja-build", "pkg-config", "python3", "xz-utils"],
               "heft-*.tar.xz", "",
               "tar -xf heft-*.tar.xz; cd heft-*/; meson setup build && ninja -C build; cd ..\n"
               "heft=$(echo heft-*/build/heft); $heft " + USE.format("$heft")),
    "deb": (["python3"], "*.deb", "apt-get update -qq; apt-get install -y -qq ./*.deb man-db",
            "heft " + USE.format("heft") + f'\npython3 -c "{LOAD}"; man -w heft-convert'),
    "wheel": (["python3", "python3-venv"], "*.whl", "",
              "python3 -m venv v; v/bin/pip install -q --no-index ./*.whl; v/bin/heft "
              + USE.format("v/bin/heft") + f'\nv/bin/python -c "{LOAD}"'),
    "one-file": (["gcc", "libc6-dev", "xz-utils"], "*-one-file.tar.xz", "",
                 "tar -xf *-one-file.tar.xz --strip-components=1\n"
                 "cc -O1 app.c heft.c -lm -pthread -o app; ./app | grep '40 tensors'"),
}


def run(*command, cwd=None, env=None):
    """Run a command; return its output if it fails."""
    p = subprocess.run([str(c) for c in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                       errors="replace")
    return p.stdout.splitlines()[-30:] + [f"ended with {p.returncode}"] if p.returncode else []


def model(folder):
    return run(sys.executable, ROOT / "tools/make_model.py", folder / "model.safetensors")


def system(work, packages):
    """Make a clean Debian with these packages; return (folder, complaints)."""
    suite = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)
    wanted = ",".join(["ca-certificates", *packages])
    found = run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={wanted}", suite[1], work)
    return work, found


def inside(root, script, *isolation):
    """Run a script in a clean system, in /srv. Without /proc no program finds a library that lies
    beside it."""
    return run("unshare", "--mount", "--pid", "--fork", "--kill-child", *isolation, "sh", "-c",
               ENTER, root, f"cd /srv\n{script}", env=CLEAN)


def try_system(files, work, kind):
    packages, pattern, online, script = KINDS[kind]
    chosen = [p for p in files.glob(pattern) if kind == "one-file" or "one-file" not in p.name]
    if not chosen:
        return [f"there is no {pattern}"]
    root, found = system(work / kind, packages)
    if found:
        return found
    for path in chosen:
        shutil.copy(path, root / "srv")
    model(root / "srv")
    (root / "srv/app.c").write_text(PROGRAM)
    shutil.copy("/etc/resolv.conf", root / "etc")
    return (inside(root, online) if online else []) or inside(root, script, "--net")


def try_static(files, work):
    """Run the static program in a folder that has nothing else."""
    root = work / "static"
    root.mkdir()
    program = next(p for p in files.glob("heft-*-linux-*"))
    shutil.copy(program, root / "heft")
    (root / "heft").chmod(0o755)
    model(root)
    for args in (["ls", "/model.safetensors"],
                 ["convert", "/model.safetensors", "/model.gguf", "--quiet"],
                 ["verify", "/model.gguf"], ["diff", "/model.safetensors", "/model.gguf"]):
        found = run("unshare", "-n", "chroot", root, "/heft", *args, env={"PATH": CLEAN["PATH"]})
        if found:
            return [" ".join(args), *found]
    return []


def try_npm(files, work):
    """Install the package into an empty project, with an empty cache, and open a model."""
    root = work / "npm"
    root.mkdir()
    model(root)
    (root / "package.json").write_text('{"type": "module", "private": true}\n')
    (root / "try.mjs").write_text(
        'import { open } from "@libheft/heft";\nconst m = await open("model.safetensors");\n'
        "if ([...m].length !== 40) process.exit(1);\nawait m.close();\n")
    env = {**os.environ, "HOME": str(root), "npm_config_cache": str(root / "cache")}
    return run("npm", "install", "--offline", "--no-audit", "--no-fund",
               next(files.glob("*.tgz")), cwd=root, env=env) or run(
                   "node", "try.mjs", cwd=root, env=env)


def try_container(files, work):
    """Build the image of the example from the source archive, and verify a model in it."""
    archive = next(p for p in files.glob("heft-*.tar.xz") if "one-file" not in p.name)
    sources = try_image.unpacked(archive, work / "container")

    def new_system(name):
        root, found = system(work / name, [])
        (root / "srv").mkdir(parents=True, exist_ok=True)
        shutil.copy("/etc/resolv.conf", root / "etc")
        return root, found
    root, user, found = try_image.build(sources / "examples/ci/Dockerfile", sources, new_system,
                                        inside)
    if not found:
        model(root / "models")
        found = run("unshare", "-n", "chroot", f"--userspec={user}", root, "/usr/bin/heft",
                    "verify", "/models/model.safetensors", env=CLEAN)
    for name in ("image-build", "image-last"):
        shutil.rmtree(work / name, ignore_errors=True)
    return found


def told(files):
    """Check the sums, and the signature if the public key lies beside the files."""
    found = run("sha256sum", "-c", "--strict", "SHA256SUMS", cwd=files)
    key = files.parent / "draft.pub"
    if (files / "heft.sig").exists() and key.exists():
        found += run(ROOT / "build/heft", "verify", "--signature", files / "heft.sig",
                     "--public-key", key, files)
    return found


def main():
    files = pathlib.Path(sys.argv[1]).resolve()
    kinds = sys.argv[2:] or [*KINDS, "static", "npm", "container"]
    work = files.parent / "try"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    own = {"static": try_static, "npm": try_npm, "container": try_container}
    results = [("sums and signature agree", told(files))]
    for kind in kinds:
        try:
            found = own[kind](files, work) if kind in own else try_system(files, work, kind)
        except StopIteration:
            found = ["the release has no such file"]
        results.append((f"{kind}, in a clean folder", found))
        shutil.rmtree(work / kind, ignore_errors=True)
    return tap.report(results)


if __name__ == "__main__":
    sys.exit(main())
