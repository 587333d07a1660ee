#!/usr/bin/env python3
"""check_commits.py [FILE]: check the messages of the commits after the one that added this program.

With FILE, check the message in FILE. A message has a subject "area: imperative" of at most 72
characters and a body that says why. TAP on stdout.

As a hook:  ln -s ../../tools/check_commits.py .git/hooks/commit-msg"""
import pathlib
import re
import subprocess
import sys

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 72
SUBJECT = re.compile(r"[a-z0-9_./-]+(, [a-z0-9_./-]+)*: \S")


def git(*args):
    """Return the output of git; "" without git or history."""
    try:
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def faults(message):
    subject, _, body = message.strip().partition("\n")
    if not SUBJECT.match(subject):
        yield f"'{subject}' does not begin with the area that changes and a colon"
    if len(subject) > LONGEST:
        yield f"'{subject}' has {len(subject)} characters, more than {LONGEST}"
    if body[:1] != "\n" or not body.strip():
        yield f"'{subject}' has no body that says why, after an empty line"


def new_messages():
    """Return the messages of commits after the one that added this program; None without
    history."""
    here = "tools/check_commits.py"
    added = git("log", "--diff-filter=A", "--format=%H", "--", here).split()
    if not added:
        return None
    return git("log", "--no-merges", "--format=%B%x00", f"{added[-1]}..HEAD").split("\0")[:-1]


def main():
    if len(sys.argv) > 1:
        lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
        messages = ["\n".join(line for line in lines if not line.startswith("#"))]
    else:
        messages = new_messages()
        if messages is None:
            print("1..0 # SKIP there is no history of commits here")
            return 0
    return tap.report(
        [("every commit says where, what and why", [f for m in messages for f in faults(m)])])


sys.exit(main())
