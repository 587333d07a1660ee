#!/usr/bin/env python3
"""check_words.py [--lower]: measure how plain the comments of the sources are.

C comments are measured, and comments and docstrings of Python. Pronouns and fragments must not
exceed the bounds in words.tsv, and the bounds may only fall. No line may be longer than 100
columns, and no two C files may have the same name. --lower writes measured values below the
bounds. TAP on stdout.

A pronoun makes the reader search for the noun; a comment that begins with "of" or "what" is a
fragment of a sentence that the reader cannot see."""
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
PRONOUNS = set("it its itself they them their those these what which who whom whose one ones "
               "another others such".split())
FRAGMENT = re.compile(
    r"(of|what|which|behind|those|that|whether|who|how|where|the same|so|as|but|and|or|for|not"
    r"|with|from|to whom|in which)\b", re.I)
LONGEST = 100
# Directories whose Python is measured; all others are measured by their C sources.
PYTHON = ("tests/py", "tests/cli", "tools", "bench")


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
    """Yield (words, text) of each comment with more than two words."""
    if directory in PYTHON:
        texts = [c for path in python_files(directory) for read in (hash_comments, docstrings)
                 for c in read(path.read_text())]
    else:
        texts = [c for path in c_files(directory) for c in c_comments(path.read_text())]
    for text in texts:
        words = re.findall(r"[A-Za-z']+", text)
        if len(words) > 2:
            yield words, " ".join(text.split())


def measure(directory):
    """Return pronouns per 100 words and fragments per 100 comments, to one decimal."""
    total = pronouns = count = fragments = 0
    for words, text in comments(directory):
        total += len(words)
        pronouns += sum(w.lower() in PRONOUNS for w in words)
        count += 1
        fragments += bool(FRAGMENT.match(text))
    return round(100 * pronouns / max(total, 1), 1), round(100 * fragments / max(count, 1), 1)


def parse(text):
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {directory: tuple(map(float, bounds)) for directory, *bounds in rows}


def committed():
    """Return the bounds of the last commit; none without git or history."""
    if not shutil.which("git"):
        return {}
    shown = subprocess.run(["git", "show", "HEAD:tools/words.tsv"], cwd=ROOT, capture_output=True,
                           text=True)
    return parse(shown.stdout) if shown.returncode == 0 else {}


def write(bounds):
    rows = ["\t".join([d, *(f"{b:g}" for b in row)]) for d, row in bounds.items()]
    BOUNDS.write_text(
        "\n".join(["directory\tpronouns in 100 words\tfragments in 100 comments", *rows]) + "\n")


def over(bounds, measured):
    for directory, limits in bounds.items():
        for unit, limit, value in zip(
            ("pronouns in 100 words of comment", "fragments in 100 comments"), limits,
                measured[directory]):
            if value > limit:
                yield f"{directory}: {value} {unit}, at most {limit:g}"


def raised(bounds, before):
    for directory, row in before.items():
        if any(new > old for new, old in zip(bounds.get(directory, (1e9,)), row)):
            yield f"tools/words.tsv: {directory} may not rise above {row}"


def long_lines(paths):
    for path in paths:
        for n, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(8)) > LONGEST:
                yield f"{path.relative_to(ROOT)}:{n}: {len(line)} columns"


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
        write({d: tuple(map(min, row, measured[d])) for d, row in bounds.items()})
        return 0
    sources = [p for d in [*(d for d in bounds if d not in PYTHON), "bench"] for p in c_files(d)]
    python = [p for d in PYTHON for p in python_files(d)]
    return tap.report([
        ("comments are whole sentences with their nouns", list(over(bounds, measured))),
        ("bounds only fall", list(raised(bounds, committed()))),
        (f"no line is longer than {LONGEST} columns",
         list(long_lines([*sources, *python, ROOT / "dev"]))),
        ("no file name occurs twice", list(repeated_names(sources))),
    ])


sys.exit(main())
