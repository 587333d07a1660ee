"""slow_mount.py: mount the file system of slow_fs.c."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time


def obstacle():
    """Return why no file system can be mounted here, or None."""
    if not shutil.which("fusermount3"):
        return "fusermount3 is not installed"
    return None if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse cannot be opened"


class Mount:
    """A mounted file."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name)
        self._counts = os.path.join(folder, "counts")

    def counts(self):
        """Return requests, bytes, largest request and requests at once since the last call."""
        return [int(n) for n in pathlib.Path(self._counts).read_text().split()]


@contextlib.contextmanager
def mounted(program, folder, path, **options):
    """Mount the file on the empty folder; None if the system refuses."""
    before = os.stat(folder).st_dev
    server = subprocess.Popen([program, folder, path, *(f"{k}={v}" for k, v in options.items())],
                              stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None and os.stat(folder).st_dev == before:
            time.sleep(0.01)
        yield Mount(folder, os.path.basename(path)) if server.poll() is None else None
    finally:
        subprocess.run(["fusermount3", "-u", "-z", folder], stderr=subprocess.DEVNULL, check=False)
        server.wait()
