"""checks.py - what the checks of the command share: they run it, and fail with a message."""
import json
import pathlib
import subprocess
import sys
import tempfile


class CheckFailed(Exception):
    pass


def require(condition, message):
    if not condition:
        raise CheckFailed(str(message))


def heft(*args, code=0, cwd=None):
    """Run the command that the first argument of the check names; code None: any exit status."""
    p = subprocess.run([sys.argv[1], *map(str, args)], capture_output=True, check=False, cwd=cwd)
    require(code is None or p.returncode == code,
            f"{args}: exit {p.returncode}, not {code}: {p.stderr.decode()[:400]}")
    return p


def heft_json(*args, code=0):
    return json.loads(heft(*args, "--json", code=code).stdout)


def run(check):
    """Call check(an empty folder); return its complaints."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
        except CheckFailed as e:
            return [str(e)]
    return []
