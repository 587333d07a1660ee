#!/usr/bin/env python3
"""check_words.py [--lower]: measure how plain the comments of the sources are.

C comments are measured, and comments and docstrings of Python. Fragments must not exceed the bounds
in words.tsv, and the bounds may only fall. No line may be longer than 100 columns, and no two C
files may have the same name. In documents the project is Heft; heft is code, or the beginning of a
command. --lower writes measured values below the bounds. TAP on stdout.

A comment that begins with "of" or "what" is a fragment of a sentence that the reader cannot see."""
import ast
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tokenize

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDS = ROOT / "tools/words.tsv"
FRAGMENT = re.compile(
    r"(of|what|which|behind|those|that|whether|who|how|where|the same|so|as|but|and|or|for|not"
    r"|with|from|to whom|in which)\b", re.I)
LONGEST = 100
# Code in Markdown: fenced and indented blocks, spans, targets of links. Then what may follow heft.
CODE = re.compile(r"^```.*?^```$|^ {4}.*?$|`[^`]*`|\]\([^)]*\)", re.M | re.S)
COMMANDS = ROOT / "cli/commands/commands.def"
# Directories whose Python is measured; all others are measured by their C sources.
PYTHON = ("tests/py", "tests/cli", "tools", "bench")


def documents():
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "examples/README.md"])


def c_files(directory):
    return sorted((ROOT / directory).rglob("*.[ch]"))


def python_files(directory):
    return sorted((ROOT / directory).rglob("*.py"))


def c_comments(text):
    for m in re.finditer(r"/\*(.*?)\*/|//([^\n]*)", text, re.S):
        yield (m[1] or m[2] or "").replace("*", " ")


def hash_comments(text):
    """Yield the comments of Python; consecutive lines with only a comment are one comment."""
    block, last = [], None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        is_alone = not token.line[:token.start[1]].strip()
        if block and not (is_alone and last == token.start[0] - 1):
            yield " ".join(block)
            block = []
        block.append(token.string.lstrip("#").strip())
        last = token.start[0] if is_alone else None
    if block:
        yield " ".join(block)


def docstrings(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""


def comments(directory):
    """Yield each comment with more than two words."""
    if directory in PYTHON:
        texts = [c for path in python_files(directory) for read in (hash_comments, docstrings)
                 for c in read(path.read_text())]
    else:
        texts = [c for path in c_files(directory) for c in c_comments(path.read_text())]
    for text in texts:
        if len(re.findall(r"[A-Za-z']+", text)) > 2:
            yield " ".join(text.split())


def measure(directory):
    """Return the fragments per 100 comments, to one decimal."""
    found = [bool(FRAGMENT.match(text)) for text in comments(directory)]
    return round(100 * sum(found) / max(len(found), 1), 1)


def parse(text):
    return {row[0]: float(row[-1]) for row in (n.split("\t") for n in text.splitlines()[1:])}


def committed():
    """Return the bounds of the last commit; none without git or history."""
    if not shutil.which("git"):
        return {}
    shown = subprocess.run(["git", "show", "HEAD:tools/words.tsv"], cwd=ROOT, capture_output=True,
                           text=True)
    return parse(shown.stdout) if shown.returncode == 0 else {}


def write(bounds):
    rows = [f"{d}\t{bound:g}" for d, bound in bounds.items()]
    BOUNDS.write_text("\n".join(["directory\tfragments in 100 comments", *rows]) + "\n")


def over(bounds, measured):
    for directory, limit in bounds.items():
        if measured[directory] > limit:
            yield f"{directory}: {measured[directory]} fragments in 100 comments, at most {limit:g}"


def raised(bounds, before):
    for directory, bound in before.items():
        if bounds.get(directory, 100) > bound:
            yield f"tools/words.tsv: {directory} may not rise above {bound:g}"


def long_lines(paths):
    for path in paths:
        for n, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(8)) > LONGEST:
                yield f"{path.relative_to(ROOT)}:{n}: {len(line)} columns"


def bare_names(pages):
    """Yield the places in documents where the project has the name of the command."""
    commands = "|".join(re.findall(r"^X\((\w+)", COMMANDS.read_text(), re.M))
    bare = re.compile(rf"(?<![\w/.@-])heft(?! (?:{commands})\b|[\w/._-])")
    for page in pages:
        text = CODE.sub(lambda m: "\n" * m[0].count("\n"), page.read_text())
        for n, line in enumerate(text.splitlines(), 1):
            if bare.search(line):
                yield f"{page.relative_to(ROOT)}:{n}: Heft, or `heft` for the command: {line[:70]}"


def repeated_names(paths):
    seen = {}
    for path in paths:
        first = seen.setdefault(path.name, path)
        if first != path:
            yield f"{path.relative_to(ROOT)} has the same name as {first.relative_to(ROOT)}"


def main():
    bounds = parse(BOUNDS.read_text())
    measured = {d: measure(d) for d in bounds}
    if "--lower" in sys.argv[1:]:
        write({d: min(bound, measured[d]) for d, bound in bounds.items()})
        return 0
    sources = [p for d in [*(d for d in bounds if d not in PYTHON), "bench"] for p in c_files(d)]
    python = [p for d in PYTHON for p in python_files(d)]
    return tap.report([
        ("comments are whole sentences", list(over(bounds, measured))),
        ("bounds only fall", list(raised(bounds, committed()))),
        (f"no line is longer than {LONGEST} columns",
         list(long_lines([*sources, *python, ROOT / "dev"]))),
        ("documents call the project Heft", list(bare_names(documents()))),
        ("no file name occurs twice", list(repeated_names(sources))),
    ])


sys.exit(main())
