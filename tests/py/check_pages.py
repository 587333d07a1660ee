#!/usr/bin/env python3
"""check_pages.py ROOT BUILD [--write]: run the commands of the documentation and check links.

The ```sh blocks of a page run in order, in one shell, in a new folder that looks like a checkout
after ./dev demo. The ```text block after an ```sh block is the expected output with stderr; "..."
matches anything within a line, and a line "..." matches any lines. A ```console block is a
transcript of commands after "$ " with their output, in the folder of the demo.

Links must lead to existing files and headings, and each page must be linked from another page.
--write replaces expected output by actual output. TAP on stdout."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
sys.path.insert(0, str(ROOT / "tools"))
import tap  # noqa: E402

PAGES = ["README.md", "docs/guide.md"]
# Pages that start in the folder of the demo, with heft in PATH.
DEMO_PAGES = [
    f"docs/{name}.md"
    for name in ("delta", "edit", "shards", "findings", "params", "casting", "profiles", "hash")
] + [
    f"docs/formats/{name}.md"
    for name in ("burnpack", "embd", "gguf", "gptrs", "mag", "npy", "safetensors", "ztensor")
]
END = "-- end of a block --"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def checkout(root):
    """Prepare the folder in which commands run: links to sources and build, and the demo's
    model."""
    for name in ("examples", "tools", "docs", "share", "include", "src"):
        (root / name).symlink_to(ROOT / name)
    (root / "build").symlink_to(BUILD)
    demo = root / ".dev/demo"
    demo.mkdir(parents=True)
    subprocess.run([sys.executable, ROOT / "tools/make_model.py", demo / "source.safetensors"],
                   check=True)
    return root


def runs(script):
    """Return a script without ./dev and git commands."""
    return "\n".join(line for line in script.splitlines()
                     if not line.startswith(("./dev", "git clone", "cd heft")))


def outputs(scripts, root):
    """Return the output of each script; the list is shorter if the shell ended early."""
    lines = "\n".join(f"{runs(s)}\nstatus=$?; echo; echo '{END}' $status" for s in scripts)
    env = {
        **os.environ, "LD_LIBRARY_PATH": str(BUILD), "NO_COLOR": "1", "COLUMNS": "100",
        "LC_ALL": "C.UTF-8"
    }
    shell = subprocess.run(["bash"], input=lines, cwd=root, env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    return [part.rstrip("\n") for part in re.split(rf"\n?{END} \d+\n", shell.stdout)[:-1]]


def pattern(expected):
    lines = []
    for line in expected.rstrip("\n").split("\n"):
        whole = line.strip() == "..."
        lines.append(
            r"(?:.*\n)*?" if whole else ".*?".join(map(re.escape,
                                                       line.rstrip().split("..."))) + r" *\n")
    return re.compile("".join(lines))


def transcript(text):
    """Return a script that prints and runs the commands of a transcript in a subshell."""
    commands = re.findall(r"^\$ (.*)$", text, re.M)
    lines = "\n".join(f"echo {shlex.quote('$ ' + c)}\n{c}" for c in commands)
    return f'(PATH="$PWD/build:$PATH"; cd .dev/demo\n{lines}\n)\n'


def pairs(text):
    """Yield (script, match of the expected output or None) for each block of commands."""
    blocks = list(BLOCK.finditer(text))
    for i, m in enumerate(blocks):
        if m[1] == "console":
            yield transcript(m[2]), m
        elif m[1] == "sh":
            after = blocks[i + 1] if i + 1 < len(blocks) and blocks[i + 1][1] == "text" else None
            close = after and not text[m.end():after.start()].strip()
            yield m[2], after if close else None


def check_page(name, write):
    path = ROOT / name
    text = path.read_text()
    found = list(pairs(text))
    with tempfile.TemporaryDirectory(prefix="heft-pages-") as folder:
        root = checkout(pathlib.Path(folder))
        begin = 'export PATH="$PWD/build:$PATH"; cd .dev/demo' if name in DEMO_PAGES else ":"
        printed = outputs([begin, *(script for script, _ in found)], root)[1:]
    if len(printed) < len(found):
        yield f"the shell ended in:\n{found[len(printed)][0]}"
    edits = []
    for (script, expected), got in zip(found, printed):
        if expected and not pattern(expected[2]).fullmatch(got + "\n"):
            yield f"{script}prints\n{got}\ninstead of\n{expected[2]}"
            edits.append((expected.start(2), expected.end(2), got + "\n"))
    for begin, end, got in reversed(edits if write else []):
        text = text[:begin] + got + text[end:]
    path.write_text(text) if write else None


# ---- names ----

CODE_FOLDERS, CODE_SUFFIXES = ("include", "src", "tests", "tools", "bench"), (".c", ".h", ".py",
                                                                              ".build")


def check_names(pages):
    """Yield heft_ and HEFT_ names that do not occur in the code; names that end in _ are
    prefixes."""
    code = (p for folder in CODE_FOLDERS for p in (ROOT / folder).rglob("*")
            if p.suffix in CODE_SUFFIXES)
    known = {
        w for p in code for w in re.findall(r"\b(?:heft|HEFT)_\w+", p.read_text(errors="replace"))
    }
    for page in pages:
        for name in sorted(
                set(re.findall(r"\b(?:heft|HEFT)_\w*[a-zA-Z]\w*\b(?<!_)", page.read_text())) -
                known):
            yield f"{page.relative_to(ROOT)}: there is no {name}"


# ---- links ----


def anchors(path):
    for title in re.findall(r"^#+ (.*)$", path.read_text(), re.M):
        yield re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    return [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", t)]


def check_links(pages):
    linked = set()
    for page in pages:
        for target in links(page):
            where, _, anchor = target.partition("#")
            path = (page.parent / where).resolve() if where else page
            if path != page:
                linked.add(path)
            if not path.exists():
                yield f"{page.relative_to(ROOT)}: {target} does not exist"
            elif anchor and anchor not in anchors(path):
                yield f"{page.relative_to(ROOT)}: {target} has no such heading"
    yield from (f"no page links to {p.relative_to(ROOT)}" for p in pages
                if p not in linked and p.name != "README.md")


def help_of(*command):
    env = {**os.environ, "LD_LIBRARY_PATH": str(BUILD)}
    return subprocess.run([BUILD / "heft", *command, "--help"], env=env, capture_output=True,
                          text=True, check=True).stdout


def check_width():
    """Yield lines of --help that a terminal of 80 columns would break."""
    commands = re.findall(r"^  ([a-z]+)  ", help_of(), re.M)
    if len(commands) < 20:
        yield f"heft --help lists {len(commands)} commands"
    for command in ([], *([name] for name in commands)):
        yield from (f"heft {' '.join(command)} --help: {len(line)} columns: {line}"
                    for line in help_of(*command).splitlines() if len(line) > 80)


def check_options():
    """Yield options of --help that docs/cli.md does not name in the section of the command."""
    text = (ROOT / "docs/cli.md").read_text()
    common, *commands = re.split(r"^(?=## (?:ls|info)$)", text, maxsplit=1, flags=re.M)
    for section in re.split(r"^## ", "".join(commands), flags=re.M)[1:]:
        command = section.split("\n", 1)[0]
        shown = help_of(command)
        named = set(re.findall(r"--[a-z-]+", common + section))
        for option in dict.fromkeys(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown, re.M)):
            if option not in named:
                yield f"heft {command} {option}"


def main():
    if not shutil.which("bash"):
        print("1..0 # SKIP bash is not here")
        return 0
    write = "--write" in sys.argv[3:]
    results = [(f"{page}: commands print what it says", list(check_page(page, write)))
               for page in PAGES + DEMO_PAGES]
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples/README.md"])
    current = [p for p in pages if p.name not in ("STYLE.md", "CHANGELOG.md")]
    return tap.report([*((t, [line for c in f for line in c.split("\n")]) for t, f in results),
                       ("links lead to pages, and every page is linked", list(check_links(pages))),
                       ("functions, types and constants exist", list(check_names(current))),
                       ("docs/cli.md names every option", list(check_options())),
                       ("help has lines of 80 columns", list(check_width()))])


sys.exit(main())
