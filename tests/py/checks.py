"""checks.py - what the checks of the command share: they run it, and fail with a message."""
import json
import pathlib
import struct
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


def read_safetensors(path):
    """Return {name: (element type, shape, bytes)} without Heft."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (e["dtype"], tuple(e["shape"]),
                   data[start + e["data_offsets"][0]:start + e["data_offsets"][1]])
            for name, e in header.items()}


def run(check):
    """Call check(an empty folder); return its complaints."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            check(pathlib.Path(scratch))
        except CheckFailed as e:
            return [str(e)]
    return []
