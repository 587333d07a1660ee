#!/usr/bin/env python3
"""check_man.py HEFT: make and read the manual pages, with mandoc and man.

Every command of heft and every public function must have a page, and the page of a command must
have every option of --help that heft(1) does not have. TAP on stdout."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402

# Pages have no date, so that builds are reproducible.
ALLOWED = re.compile(r"missing date|bad .so|^mandoc: see above", re.M)


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          **more)


def rendered(page):
    """Return the source of a page without markup."""
    text = page.read_text()
    return re.sub(r"\\f[BIR]|\\&|\\", "", text.replace("\\-", "-"))


def lint(pages):
    """Return the complaints of mandoc and of man about pages."""
    if shutil.which("mandoc"):
        p = run("mandoc", "-T", "lint", "-W", "warning", *pages)
        yield from (line for line in p.stdout.splitlines() + p.stderr.splitlines()
                    if not ALLOWED.search(line))
    if shutil.which("man"):
        for page in pages:
            p = run("man", "--warnings", "-l", page, env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8",
                                                          "PATH": "/usr/bin:/bin"})
            yield from (f"{page.name}: {line}" for line in p.stderr.splitlines())
            if len(p.stdout) < 200:
                yield f"{page.name}: man shows nothing"


def options(heft, command):
    shown = run(heft, command, "--help").stdout
    return re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown, re.M)


def missing_options(heft, folder, command):
    own = folder / "man1" / f"heft-{command}.1"
    if not own.exists():
        return [f"there is no page heft-{command}(1)"]
    text = rendered(own) + rendered(folder / "man1/heft.1")
    return [f"{o} is missing" for o in options(heft, command) if not re.search(o + r"\b", text)]


def functions():
    """Return the names of the public functions."""
    text = (ROOT / "heft.map").read_text().split("HEFT_PRIVATE")[0]
    return re.findall(r"^\s+(heft_\w+);", text, re.M)


def results(heft, folder):
    made = run(sys.executable, ROOT / "tools/gen_man.py", folder / "man1", folder / "man3",
               folder / "man7")
    yield "the pages are made", made.stderr.splitlines()
    again = folder / "again"
    run(sys.executable, ROOT / "tools/gen_man.py", again / "man1", again / "man3", again / "man7")
    for section in ("man1", "man3", "man7"):
        yield f"{section} is the same when it is made again", run(
            "diff", "-r", folder / section, again / section).stdout.splitlines()
    for section in ("man1", "man7"):
        yield f"mandoc and man read {section}", list(lint(sorted((folder / section).iterdir())))
    whole = [p for p in sorted((folder / "man3").iterdir()) if p.stat().st_size > 99]
    yield "mandoc and man read man3", list(lint(whole))
    listed = run(heft, "--help").stdout.split("Look:")[1].split("`heft")[0]
    commands = re.findall(r"^  ([a-z]+) ", listed, re.M)
    for command in commands:
        yield f"heft-{command}(1) has the options", missing_options(heft, folder, command)
    yield "every public function has a page", [
        f for f in functions() if not (folder / "man3" / f"{f}.3").exists()
    ]
    for page in (folder / "man3").iterdir():
        target = re.match(r"\.so (\S+)\n$", page.read_text())
        if target and not (folder / target[1]).exists():
            yield f"{page.name} leads to a page", [f"{target[1]} does not exist"]
    formats = rendered(folder / "man7/heft-formats.7")
    yield "heft-formats(7) names every format", [
        name for name in re.findall(r"^(\S+)\t", run(heft, "formats", "--raw").stdout, re.M)
        if not re.search(rf"\b{name}\b", formats)
    ]


def main():
    with tempfile.TemporaryDirectory(prefix="heft-man-") as folder:
        return tap.report(results(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder)))


sys.exit(main())
