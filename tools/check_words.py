#!/usr/bin/env python3
"""check_words.py [--lower]: measure how plain the comments of the C sources are.

Pronouns and fragments must not exceed the bounds in words.tsv, which may only fall; no line may be longer than 100
columns; no file name may occur twice. --lower writes measured values that are below the bounds. TAP on stdout.

A pronoun makes the reader search for the noun; a comment that begins with "of" or "what" is a fragment of a sentence
that the reader cannot see."""
import pathlib
import re
import shutil
import subprocess
import sys

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDS = ROOT / "tools/words.tsv"
PRONOUNS = set(
    "it its itself they them their those these what which who whom whose one ones another others such"
    .split())
FRAGMENT = re.compile(
    r"(of|what|which|behind|those|that|whether|who|how|where|the same|so|as|but|and|or|for|not|with|from"
    r"|to whom|in which)\b", re.I)
LONGEST = 100


def files(directory):
    return sorted((ROOT / directory).rglob("*.[ch]"))


def comments(text):
    for m in re.finditer(r"/\*(.*?)\*/|//([^\n]*)", text, re.S):
        words = re.findall(r"[A-Za-z']+", m[1] or m[2] or "")
        if len(words) > 2:
            yield words, " ".join((m[1] or m[2]).replace("*", " ").split())


def measure(directory):
    """Pronouns among 100 words of comment, and fragments among 100 comments, to one decimal."""
    words = pronouns = count = fragments = 0
    for path in files(directory):
        for spoken, text in comments(path.read_text()):
            words += len(spoken)
            pronouns += sum(w.lower() in PRONOUNS for w in spoken)
            count += 1
            fragments += bool(FRAGMENT.match(text))
    return round(100 * pronouns / max(words, 1), 1), round(100 * fragments / max(count, 1), 1)


def parse(text):
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return {directory: tuple(map(float, bounds)) for directory, *bounds in rows}


def committed():
    """The bounds of the last commit; none without git or without a history."""
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
        for what, limit, value in zip(
            ("pronouns in 100 words of comment", "fragments in 100 comments"), limits,
                measured[directory]):
            if value > limit:
                yield f"{directory}: {value} {what}, at most {limit:g}"


def raised(bounds, before):
    for directory, row in before.items():
        if any(new > old for new, old in zip(bounds.get(directory, (1e9,)), row)):
            yield f"tools/words.tsv: {directory} may not rise above {row}"


def long_lines(directories):
    for path in (p for d in directories for p in files(d)):
        for n, line in enumerate(path.read_text().splitlines(), 1):
            if len(line.expandtabs(8)) > LONGEST:
                yield f"{path.relative_to(ROOT)}:{n}: {len(line)} columns"


def repeated(directories):
    seen = {}
    for path in (p for d in directories for p in files(d)):
        first = seen.setdefault(path.name, path)
        if first != path:
            yield f"{path.relative_to(ROOT)} is called as {first.relative_to(ROOT)}"


def main():
    bounds = parse(BOUNDS.read_text())
    measured = {d: measure(d) for d in bounds}
    if "--lower" in sys.argv[1:]:
        write({d: tuple(map(min, row, measured[d])) for d, row in bounds.items()})
        return 0
    return tap.report([
        ("comments are whole sentences with their nouns", list(over(bounds, measured))),
        ("bounds only fall", list(raised(bounds, committed()))),
        (f"no line is longer than {LONGEST} columns", list(long_lines([*bounds, "bench"]))),
        ("no file name occurs twice", list(repeated([*bounds, "bench"]))),
    ])


sys.exit(main())
