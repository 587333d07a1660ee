#!/usr/bin/env python3
"""check_front.py ROOT BUILD: check what a stranger sees first. TAP on stdout.

README.md stays short, its pictures are those of the commands and figures of today, the models of
examples/ci are judged as the recipes promise, and the site of the documents has no dead links."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import zipfile

ROOT, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import bars  # noqa: E402
import docs_site  # noqa: E402
import draw_terminal  # noqa: E402
import tap  # noqa: E402

MOST_LINES, MARK_BYTES = 150, 4096
CI = ROOT / "examples/ci"
ENV = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(BUILD)}


def readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.count("\n")
    if lines > MOST_LINES:
        yield f"{lines} lines are more than {MOST_LINES}"
    for words in ("./dev demo", "./dev check", "meson setup build && ninja -C build", "```python"):
        if words not in text:
            yield f"there is no {words}"
    if text.find("```python") > text.find("```c\n"):
        yield "C comes before Python"


def pictures():
    """Yield pictures that are no SVG, or load something from elsewhere."""
    for path in (ROOT / "docs").glob("*.svg"):
        text = path.read_text(encoding="utf-8")
        xml.etree.ElementTree.fromstring(text)
        if re.search(r"(href|src|url)\s*[=(]|<script", text):
            yield f"{path.name} refers to something"
    if (ROOT / "docs/mark.svg").stat().st_size > MARK_BYTES:
        yield f"mark.svg has more than {MARK_BYTES} bytes"


def recipe(program, cwd, *args, **env):
    p = subprocess.run(["sh", program, *args], cwd=cwd, env={**ENV, **env}, text=True, check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return p.returncode, p.stdout


def expect(found, status, words=""):
    return [] if found[0] == status and words in found[1] else [
        f"{found[0]} instead of {status}, or no '{words}' in:", found[1]]


def make_models(folder):
    """Write models: one that is right, in a folder whose name has a space, and others to judge."""
    (folder / "my models").mkdir()
    good = folder / "my models/good.safetensors"
    subprocess.run([sys.executable, ROOT / "tools/make_model.py", good], check=True)
    return good


def checks_of_models(folder):
    good = make_models(folder)
    run = CI / "check_models.sh"
    yield "a model that is right passes", expect(recipe(run, folder), 0, "1 models, all right")
    (folder / "link.gguf").symlink_to("gone")
    yield "a link that leads nowhere is an error", expect(recipe(run, folder), 1, "link.gguf")
    (folder / "link.gguf").unlink()
    yield "a budget is kept", expect(recipe(run, folder, MODEL_BUDGET="1000"), 1, "budget of 1000")
    yield "a budget that is no number is an error", expect(
        recipe(run, folder, MODEL_BUDGET="2 GiB"), 1)
    (folder / "cut.safetensors").write_bytes(good.read_bytes()[:-1])
    yield "a cut model is found", expect(recipe(run, folder), 1, "cut.safetensors: is not intact")
    (folder / "cut.safetensors").unlink()
    (folder / "bad.pt").write_bytes(b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.")
    yield "a pickle that would run something is found", expect(
        recipe(run, folder), 1, "would run code")
    (folder / "bad.pt").unlink()
    (folder / "bad.pt2").write_bytes(b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R.")
    yield "code is found behind other names", expect(
        recipe(run, folder), 1, "bad.pt2: would run code")
    (folder / "bad.pt2").unlink()
    with zipfile.ZipFile(folder / "lzma.npz", "w", zipfile.ZIP_LZMA) as z:
        z.writestr("a.npy", b"")
    yield "a file that heft cannot read is not called damaged", expect(
        recipe(run, folder), 1, "lzma.npz: cannot be checked here")
    yield "a file that is not there is an error", expect(
        recipe(run, folder, "none.gguf"), 1, "none.gguf")
    yield "without heft nothing is said about models", expect(
        recipe(run, folder, PATH="/usr/bin:/bin"), 2, "there is no heft")


def checks_of_commits(folder):
    """Check the hook in a repository."""
    good = make_models(folder).read_bytes()

    def git(*args):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *args],
                              cwd=folder, env=ENV, capture_output=True, text=True, check=False)
    git("init", "-q")
    for name in ("pre-commit", "check_models.sh"):
        shutil.copy(CI / name, folder / ".git/hooks")
    (folder / ".git/hooks/pre-commit").chmod(0o755)
    git("add", "-A")
    done = git("commit", "-q", "-m", "models")
    yield "a commit with a right model is made", [done.stderr] if done.returncode else []
    path = folder / "my models/other.safetensors"
    path.write_bytes(good[:-1])
    git("add", "-A")
    path.write_bytes(good)
    done = git("commit", "-q", "-m", "cut")
    yield "what is committed is checked, not what lies in the folder", (
        [] if done.returncode and "is not intact" in done.stdout + done.stderr
        else [done.stdout + done.stderr])


def site():
    made = docs_site.Site()
    yield from made.dead
    for name in ("cli/convert", "cli/sbom", "guide/verify-a-download", "api/heft-h"):
        if name not in made.pages:
            yield f"there is no page {name}"
    known = set(re.findall(r"^\| \[`heft (\w+)", (ROOT / "docs/cli.md").read_text(), re.M))
    yield from (f"heft {name} has no page" for name in sorted(known) if f"cli/{name}" not in
                made.pages)
    yield from (f"{name} is not on the site"
                for name in ("docs/page-light.png", "docs/page-dark.png", "docs/terminal.svg")
                if name not in made.copied)
    if not made.names().get("heft_file_open", "").startswith("api/heft-h.html#"):
        yield "heft_file_open has no entry"


def broken_site():
    """Check that a dead link is found: in a copy of the documents, a heading is renamed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        shutil.copytree(ROOT / "docs", copy / "docs")
        (copy / "README.md").write_text("[to](docs/cli.md#convert) [away](docs/gone.md)\n")
        page = copy / "docs/cli.md"
        page.write_text(page.read_text().replace("\n## convert\n", "\n## transform\n"))
        old, docs_site.ROOT = docs_site.ROOT, copy
        try:
            dead = docs_site.Site().dead
        finally:
            docs_site.ROOT = old
    for words in ("docs/cli.md#convert has no such heading", "docs/gone.md does not exist"):
        if f"README.md: {words}" not in dead:
            yield f"not found: {words}"


def results():
    yield "README.md is short and begins with what people want", list(readme())
    yield "pictures stand alone", list(pictures())
    yield "docs/terminal.svg shows what the commands print", list(
        draw_terminal.differences(BUILD / "heft"))
    page = bars.PAGE.read_text(encoding="utf-8")
    same = bars.PICTURE.read_text(encoding="utf-8") == bars.draw(page)
    yield "docs/bars.svg is drawn from docs/performance.md", (
        [] if same else ["bench/bars.py draws another picture"])
    yield "the documents make a site without dead links", list(site())
    yield "a dead link is found", list(broken_site())
    for checks in (checks_of_models, checks_of_commits):
        with tempfile.TemporaryDirectory(prefix="heft-front-") as folder:
            yield from checks(pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(tap.report(results()))
