"""run.py [--update] [COMMAND[/CASE]...]: run the cases of the command line. TAP on stdout.

A case is COMMAND/CASE.sh. sh runs the script in an empty directory with the files of samples.py;
$HEFT is the command, $CASES this directory. CASE.out, CASE.err and CASE.code have the expected
stdout, stderr and exit status; a missing file stands for no output or status 0. Exit status 77
skips the case, with the reason on stdout. Cases with terminal.py are skipped without
pseudo-terminals. --update writes the actual results: read the difference before a commit."""
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
SANDBOX_NOTE = b"heft: note: the sandbox has no "
TIMEOUT = 600  # seconds: a case that takes longer hangs


def read(path):
    return path.read_bytes() if path.exists() else b""


def write(path, data):
    if data:
        path.write_bytes(data)
    elif path.exists():
        path.unlink()


def environment():
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    env.update(LC_ALL="C", TERM="xterm", CASES=str(HERE), PYTHONPATH=str(HERE),
               PYTHONDONTWRITEBYTECODE="1", PYTHON=sys.executable,
               HEFT=str(pathlib.Path(os.environ.get("HEFT", "build/heft")).resolve()))
    return env


def run_case(script, samples):
    with tempfile.TemporaryDirectory(prefix="heft-cli-") as folder:
        shutil.copytree(samples, folder, dirs_exist_ok=True)
        os.chmod(folder, 0o755)  # copytree() has copied the mode of the samples' folder
        child = subprocess.Popen(["sh", "-u", str(script)], cwd=folder, env=environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            err += b"\nstopped: it took longer than %d s\n" % TIMEOUT
        # On a system without a sandbox, --verbose adds notes.
        lines = [n for n in err.splitlines(True) if not n.startswith(SANDBOX_NOTE)]
        return child.returncode, out, b"".join(lines)


def has_terminals():
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError:
        return False
    return True


def show(name, want, got):
    print("# %s" % name)
    for mark, text in (("-", want), ("+", got)):
        for line in text.decode(errors="backslashreplace").splitlines():
            print("#   %s %s" % (mark, line))


def check(script, code, out, err):
    same = True
    for name, want, got in (("stdout", read(script.with_suffix(".out")), out),
                            ("stderr", read(script.with_suffix(".err")), err),
                            ("exit", read(script.with_suffix(".code")).strip() or b"0",
                             b"%d" % code)):
        if want != got:
            show(name, want, got)
            same = False
    return same


def update(script, code, out, err):
    write(script.with_suffix(".out"), out)
    write(script.with_suffix(".err"), err)
    write(script.with_suffix(".code"), b"%d\n" % code if code else b"")


def main(args):
    # A shell without job control ignores these signals in background jobs, and child processes
    # inherit the setting.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    updating = "--update" in args
    wanted = [a for a in args if a != "--update"]
    if not os.access(environment()["HEFT"], os.X_OK):
        print("Bail out! %s is not there" % environment()["HEFT"])
        return 1
    cases = sorted(HERE.glob("*/*.sh"))
    names = {c: "%s/%s" % (c.parent.name, c.stem) for c in cases}
    if wanted:
        cases = [c for c in cases if any(names[c] == w or c.parent.name == w for w in wanted)]
    failed = not cases
    print("1..%d" % len(cases))
    with tempfile.TemporaryDirectory(prefix="heft-samples-") as samples:
        subprocess.run([sys.executable, str(HERE / "samples.py"), samples], check=True)
        terminals = has_terminals()
        for number, case in enumerate(cases, 1):
            if not terminals and b"terminal.py" in case.read_bytes():
                print("ok %d - %s # SKIP no pseudo-terminals here" % (number, names[case]))
                continue
            code, out, err = run_case(case, samples)
            if code == SKIPPED:
                print("ok %d - %s # SKIP %s" % (number, names[case], out.decode().strip()))
                continue
            if updating:
                update(case, code, out, err)
            good = check(case, code, out, err)
            failed |= not good
            print("%s %d - %s" % ("ok" if good else "not ok", number, names[case]), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
