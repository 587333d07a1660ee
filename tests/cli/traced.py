"""traced.py - run heft with strace, which injects failures and signals.

run(["inject=..."], args...) returns (exit status or -signal, stderr); `path` limits the injection
to calls with this file. SKIP is the reason why strace cannot be used, or None; the variable
HEFT_UNTRACED states a reason."""
import os
import resource
import shutil
import subprocess

HEFT = os.environ["HEFT"]
# glibc checks with these calls whether a file without a name can be linked
NAMED = "inject=?access,?faccessat,?faccessat2:error=EACCES"


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def environment():
    """Return the environment for strace: the leak sanitizer does not work under strace."""
    return {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def run(injected, *args, path=None, **options):
    argv = ["strace", "-f", "-o", "/dev/null"] + (["-P", os.path.abspath(path)] if path else [])
    for rule in injected:
        argv += ["-e", rule]
    done = subprocess.run([*argv, HEFT, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env=environment(), check=False, **options)
    return done.returncode, done.stderr.strip()


def why_unavailable():
    if os.environ.get("HEFT_UNTRACED"):
        return os.environ["HEFT_UNTRACED"]
    if not shutil.which("strace"):
        return "there is no strace here"
    traced = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL,
                            check=False)
    return "strace is not allowed here" if traced.returncode else None


SKIP = why_unavailable()
