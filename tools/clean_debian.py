#!/usr/bin/env python3
"""clean_debian.py [FOLDER]: take the first steps of a new user in a new Debian: demo, installation,
the program of README.md, removal; then make, install and test the packages.

mmdebstrap makes the system in FOLDER (.dev/clean-debian), with the mirrors and the proxy of this
machine; FOLDER.tar keeps the system for the next time. The last commit is tested. Needs root.
TAP on stdout."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tap

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSIDE = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
ENTER = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
         'cp /etc/resolv.conf "$0/etc" && exec chroot "$0" /bin/bash -euc "$1"')
INSTALL = './dev install --prefix "$HOME/.local"'
STEPS = {
    "demo": "./dev demo",
    "no test is built": "! ls build/tests/test_text build/fuzz/fuzz_embd 2>/dev/null | grep -q .",
    "installation": INSTALL,
    "a second installation compiles nothing": INSTALL + " >log; ! grep -q Compiling log",
    "the program of README.md": "cp first.c .dev/demo; cd .dev/demo; %s",
    "removal": './dev uninstall --prefix "$HOME/.local"; [ -z "$(find "$HOME/.local" -type f)" ]',
    "packages": "./dev deb",
    "installed packages": """apt-get install -y -qq ./build-deb/*.deb
        for test in command library python; do
            AUTOPKGTEST_TMP=$(mktemp -d) debian/tests/$test
        done""",
}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def make(folder):
    """Unpack the system, which mmdebstrap makes once, with the last commit in /srv/heft."""
    archive = folder.with_name(folder.name + ".tar")
    suite = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)
    mirrors = sorted(set(output("apt-get", "indextargets", "--format",
                                "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Origin: Debian",
                                "Created-By: Packages").splitlines()))
    proxy = output("apt-config", "dump", '--format=--aptopt=%F "%v";%n', "Acquire::http::Proxy",
                   "Acquire::https::Proxy").splitlines()
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not archive.exists():
        new = archive.with_name(archive.name + ".new")
        subprocess.run(["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase",
                        "--include=ca-certificates,git,python3", *proxy, suite[1], new, *mirrors],
                       check=True)
        new.rename(archive)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    subprocess.run(["git", "clone", "-q", ROOT, folder / "srv/heft"], check=True)


def program():
    """Return the program in C of README.md, and the commands that build and run it."""
    code, commands = re.search(r"```c\n(.*?)```.*?```\n(export PATH.*?)```",
                               (ROOT / "README.md").read_text(), re.S).groups()
    return code, commands


def results(folder):
    code, commands = program()
    (folder / "srv/heft/first.c").write_text(code)
    for title, script in STEPS.items():
        script = "cd /srv/heft; " + (script % commands if "%s" in script else script)
        p = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
                            ENTER, folder, script], env=INSIDE, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        lines = p.stdout.decode(errors="replace").splitlines()
        yield title, [f"ended with {p.returncode}", *lines[-30:]] if p.returncode else []


def main():
    if os.geteuid():
        print("1..0 # SKIP only root can enter another system")
        return 0
    folder = sys.argv[1] if len(sys.argv) > 1 else ROOT / ".dev/clean-debian"
    folder = pathlib.Path(folder).resolve()
    make(folder)
    return tap.report(results(folder))


if __name__ == "__main__":
    sys.exit(main())
