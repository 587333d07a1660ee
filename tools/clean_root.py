#!/usr/bin/env python3
"""clean_root.py FOLDER [PACKAGE...]: make a new Debian in FOLDER that has only these packages.
clean_root.py --can: only say whether that is possible here.

mmdebstrap makes the system once, with the mirrors and the proxy of apt here, and .dev keeps it as
clean-SUITE.tar. HEFT_CLEAN_FILES names files of this machine, separated by colons, that programs
in the new system need to reach a network: certificates, settings of apt, pip or npm. They are
copied to the same paths. Needs root and mmdebstrap."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENV = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
       "DEBIAN_FRONTEND": "noninteractive"}
# A program finds a library beside it by /proc, and bash reads <(...) by /dev/fd.
ENTER = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
         'exec chroot "$0" "$1" -euc "$2"')
ALONE = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
LAST_LINES = 30


def refusal():
    """Return why no system can be made here, and what to do; None if nothing is in the way."""
    if os.geteuid():
        return "only root can make and enter another system: run this as root"
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap, which makes a new Debian, is missing: apt-get install mmdebstrap"
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        return "this machine permits no new namespaces (unshare), as some containers do"
    return None


def run(*command, cwd=None, env=None):
    """Run a command; return the end of its output if it fails."""
    p = subprocess.run([str(c) for c in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                       errors="replace")
    end = p.stdout.splitlines()[-LAST_LINES:]
    return [*end, f"ended with {p.returncode}"] if p.returncode else []


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wanted_files():
    return [p for p in os.environ.get("HEFT_CLEAN_FILES", "").split(":") if p]


def options_of_apt():
    """Return (options, mirrors) for mmdebstrap: those that apt has here."""
    mirrors = sorted(set(output("apt-get", "indextargets", "--format",
                                "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Origin: Debian",
                                "Created-By: Packages").splitlines()))
    options = output("apt-config", "dump", '--format=--aptopt=%F "%v";%n', "Acquire::http::Proxy",
                     "Acquire::https::Proxy").splitlines()
    copies = [f'--setup-hook=install -D -m 644 {shlex.quote(p)} "$1"{shlex.quote(p)}'
              for p in wanted_files()]
    return [*options, *copies], mirrors


def base():
    """Make the archive of the system if it is not there; return (path, complaints)."""
    suite = re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(),
                      re.M)[1]
    archive = ROOT / f".dev/clean-{suite}.tar"
    if archive.exists():
        return archive, []
    archive.parent.mkdir(exist_ok=True)
    new = archive.with_name(archive.name + ".new")
    options, mirrors = options_of_apt()
    found = run("mmdebstrap", "--quiet", "--format=tar", "--variant=minbase",
                "--include=ca-certificates", *options, suite, new, *mirrors)
    if not found:
        new.rename(archive)
    return archive, found


def inside(root, script, network=False, shell="/bin/sh"):
    """Run a script in a system, in /srv; return the end of its output if it fails."""
    isolation = [] if network else ["--net"]
    return run(*ALONE, *isolation, "sh", "-c", ENTER, root, shell, f"cd /srv\n{script}", env=ENV)


def make(folder, packages=()):
    """Make a system in a new folder; return complaints."""
    archive, found = base()
    if found:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = run("tar", "-xf", archive, "-C", folder)
    shutil.copy("/etc/resolv.conf", folder / "etc")
    (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
    # No file of this system has to outlive a power failure: dpkg waits for no disk.
    (folder / "etc/dpkg/dpkg.cfg.d/unsafe-io").write_text("force-unsafe-io\n")
    if packages and not found:
        found = inside(folder, "apt-get update -qq; apt-get install -y -qq "
                       f"--no-install-recommends {' '.join(packages)}", network=True)
    return found


def main():
    if len(sys.argv) < 2:
        print(f"usage: {__doc__.splitlines()[0]}", file=sys.stderr)
        return 2
    reason = refusal()
    if reason:
        print(f"no clean Debian can be made here: {reason}", file=sys.stderr)
        return 1
    found = [] if sys.argv[1] == "--can" else make(pathlib.Path(sys.argv[1]).resolve(),
                                                   sys.argv[2:])
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
