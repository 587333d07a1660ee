"""try_image.py - build the image of examples/ci/Dockerfile without a daemon, in clean systems.

Each stage is a new Debian of mmdebstrap in place of the image that FROM names. Only the
instructions that the file uses are known; another one is a complaint."""
import pathlib
import re
import shutil
import shlex
import subprocess

KNOWN = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}


def instructions(path):
    """Yield (word, rest) of a Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            yield tuple(line.split(" ", 1))


def copied(rest, root, sources, stages):
    """Copy what COPY names: the sources, or a path of a stage before."""
    *options, source, target = shlex.split(rest)
    to = root / target.lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    if not options:
        shutil.copytree(sources, to, symlinks=True)
        return
    path = stages[options[0].removeprefix("--from=")] / source.lstrip("/")
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy(path, to)  # the file, where a link leads to it


def build(path, sources, new_system, inside):
    """Build an image; return (root, user, complaints). new_system(name) makes a clean Debian,
    inside(root, script) runs a script in it and returns complaints."""
    stages, root, user, folder = {}, None, "root", "/"
    for word, rest in instructions(path):
        found = []
        if word == "FROM":
            name = rest.split(" AS ")[-1].strip() if " AS " in rest else "last"
            root, found = new_system(f"image-{name}")
            stages[name], folder = root, "/"
        elif word == "RUN":
            found = inside(root, f"cd {shlex.quote(folder)}; {rest}")
        elif word == "COPY":
            copied(rest, root, sources, stages)
        elif word == "WORKDIR":
            folder = rest
            (root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            user = rest
        elif word not in KNOWN:
            found = [f"{word} is not known"]
        if found:
            return root, user, [f"{word} {rest[:60]}", *found]
    return root, user, []


def unpacked(archive, folder):
    """Unpack a source archive, as the clone that a build would copy."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", folder, "--strip-components=1"], check=True)
    return pathlib.Path(folder)
