#!/usr/bin/env python3
"""try_release.py FOLDER [KIND...]: install and use each file of a release where nothing else is.

FOLDER has what release_files.py has made. Each kind gets a new Debian of its own below
FOLDER/../try, made by clean_root.py, with the packages of its row; the static program gets an empty
folder. What runs there has no network, except apt. TAP on stdout."""
import pathlib
import shutil
import sys

import clean_root
import tap
import try_image
from clean_root import ROOT, inside, run

USE = """ls model.safetensors >/dev/null
{0} convert --force model.safetensors model.gguf
{0} verify model.gguf
{0} diff model.safetensors model.gguf"""
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
MODULE = """import { open } from "@libheft/heft";
const m = await open("model.safetensors");
if ([...m].length !== 40) process.exit(1);
await m.close();
"""
# Files that each system gets beside the model.
TEXTS = {"app.c": PROGRAM, "try.mjs": MODULE,
         "package.json": '{"type": "module", "private": true}\n'}
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
                 "grep -q '^Copyright' NOTICE; grep -q 'SPDX.*Apache-2.0' heft.c heft.h\n"
                 "cc -O1 app.c heft.c -lm -pthread -o app; ./app | grep '40 tensors'"),
    "npm": (["nodejs", "npm"], "*.tgz", "",
            "npm install --offline --no-audit --no-fund ./*.tgz; node try.mjs"),
}


def model(folder):
    return run(sys.executable, ROOT / "tools/make_model.py", folder / "model.safetensors")


def try_system(files, work, kind):
    packages, pattern, online, script = KINDS[kind]
    chosen = [p for p in files.glob(pattern) if kind == "one-file" or "one-file" not in p.name]
    if not chosen:
        return [f"there is no {pattern}"]
    root = work / kind
    found = clean_root.make(root, packages)
    if found:
        return found
    for path in chosen:
        shutil.copy(path, root / "srv")
    model(root / "srv")
    for name, text in TEXTS.items():
        (root / "srv" / name).write_text(text)
    return (inside(root, online, network=True) if online else []) or inside(root, script)


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
        found = run("unshare", "-n", "chroot", root, "/heft", *args, env=clean_root.ENV)
        if found:
            return [" ".join(args), *found]
    return []


def try_container(files, work):
    """Build the image of the example from the source archive, and verify a model in it."""
    archive = next(p for p in files.glob("heft-*.tar.xz") if "one-file" not in p.name)
    sources = try_image.unpacked(archive, work / "container")

    def new_system(name):
        return work / name, clean_root.make(work / name)
    root, user, found = try_image.build(
        sources / "examples/ci/Dockerfile", sources, new_system,
        lambda root, script: inside(root, script, network=True))
    if not found:
        model(root / "models")
        found = run("unshare", "-n", "chroot", f"--userspec={user}", root, "/usr/bin/heft",
                    "verify", "/models/model.safetensors", env=clean_root.ENV)
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


def results(files, kinds, work):
    """Yield (title, complaints) as each kind has been tried."""
    yield "sums and signature agree", told(files)
    own = {"static": try_static, "container": try_container}
    for kind in kinds:
        try:
            found = own[kind](files, work) if kind in own else try_system(files, work, kind)
        except StopIteration:
            found = ["the release has no such file"]
        yield f"{kind}, in a clean folder", found
        shutil.rmtree(work / kind, ignore_errors=True)


def main():
    files = pathlib.Path(sys.argv[1]).resolve()
    kinds = sys.argv[2:] or [*KINDS, "static", "container"]
    reason = clean_root.refusal()
    if reason:
        print(f"release: its files cannot be tried: {reason}", file=sys.stderr)
        return 1
    work = files.parent / "try"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return tap.report(results(files, kinds, work))


if __name__ == "__main__":
    sys.exit(main())
