#!/usr/bin/env python3
"""clean_debian.py [PART]: take the first steps of a new user in a new Debian.

The parts are `install` (demo, installation, the program of README.md, removal) and `packages`
(make, install and test the packages of Debian); without PART both. The system is below
.dev/clean-debian; clean_root.py says how it is made and what it needs. The last commit is tested.
TAP on stdout."""
import re
import subprocess
import sys

import clean_root
import tap
from clean_root import ROOT

SYSTEM = ROOT / ".dev/clean-debian"
NEEDED = ("git", "python3")  # by a user who clones the sources
INSTALL = './dev install --prefix "$HOME/.local"'
PARTS = {
    "install": {
        "demo": "./dev demo",
        "no test is built":
            "! ls build/tests/test_text build/fuzz/fuzz_embd 2>/dev/null | grep -q .",
        "installation": INSTALL,
        "a second installation compiles nothing": INSTALL + " >log; ! grep -q Compiling log",
        "the program of README.md": "%s",
        "removal": './dev uninstall --prefix "$HOME/.local"\n'
                   '[ -z "$(find "$HOME/.local" -type f)" ]',
    },
    "packages": {
        "packages": "./dev deb",
        "installed packages": """apt-get install -y -qq ./build-deb/*.deb
            for test in command library python; do
                AUTOPKGTEST_TMP=$(mktemp -d) debian/tests/$test
            done""",
    },
}


def program():
    """Return the program in C of README.md, and the commands that build and run it."""
    code, commands = re.search(r"```c\n(.*?)```.*?```\n(export PATH.*?)```",
                               (ROOT / "README.md").read_text(), re.S).groups()
    return code, commands


def results(parts):
    found = clean_root.make(SYSTEM, NEEDED)
    yield "a new Debian", found
    if found:
        return
    subprocess.run(["git", "clone", "-q", ROOT, SYSTEM / "srv/heft"], check=True)
    code, commands = program()
    (SYSTEM / "srv/heft/first.c").write_text(code)
    for part in parts:
        for title, script in PARTS[part].items():
            script = "cd heft\n" + (script % commands if "%s" in script else script)
            yield title, clean_root.inside(SYSTEM, script, network=True, shell="/bin/bash")


def main():
    parts = sys.argv[1:] or list(PARTS)
    if set(parts) - set(PARTS):
        print(f"usage: clean_debian.py [{' | '.join(PARTS)}]", file=sys.stderr)
        return 2
    reason = clean_root.refusal()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return int(len(sys.argv) > 1)  # a part that somebody asks for must run
    return tap.report(results(parts))


if __name__ == "__main__":
    sys.exit(main())
