"""Progress and interrupts of the command functions: a child is never left behind."""
import os
import signal
import sys
import threading
import types

import pytest

import heft
from heft import _child
from command_files import write_program, write_safetensors

PROGRESS = """
for done in (0, 5, 10):
    say(kind="progress", done=done, total=20)
say(kind="result", file="out", format="mag", bytes=3, dry_run=False)
"""
# Runs until an interrupt, then takes its time to clean up. The full pipe keeps the child waiting
# for a reader, were it not closed.
SLOW = """
def stop(number, frame):
    time.sleep(0.2)
    pathlib.Path(%r).write_text("clean")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, stop)
say(kind="progress", done=1, total=2)
while True:
    time.sleep(0.01)
"""


def no_children():
    """Return whether this process has no child, running or dead."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


@pytest.fixture(name="program")
def _program(tmp_path, monkeypatch):
    def install(body):
        monkeypatch.setattr(_child, "COMMAND", write_program(tmp_path / "program", body))
    return install


def test_progress_is_called_with_bytes(program):
    program(PROGRESS)
    calls = []
    done = heft.convert("in", "out", progress=lambda *step: calls.append(step))
    assert calls == [(0, 20), (5, 20), (10, 20), (20, 20)]
    assert done.bytes == 3


def test_progress_true_without_tqdm(program, monkeypatch, capsys):
    program(PROGRESS)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    heft.convert("in", "out", progress=True)
    assert capsys.readouterr().err.endswith("\rheft convert:  50%\rheft convert: 100%\n")


def test_progress_true_with_tqdm(program, monkeypatch):
    program(PROGRESS)
    seen = []

    class Bar:
        """A stand-in for tqdm's bar."""
        def __init__(self, **options):
            self.n, self.total = 0, None
            seen.append(options["desc"])

        def update(self, n):
            self.n += n
            seen.append((self.n, self.total))

        def close(self):
            seen.append("closed")

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))
    heft.convert("in", "out", progress=True)
    assert seen == ["heft convert", (0, 20), (5, 20), (10, 20), (20, 20), "closed"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_progress_raises_stops_the_child(program, tmp_path, error):
    program(SLOW % str(tmp_path / "cleaned"))

    def fail(done, total):
        raise error("stop")
    with pytest.raises(error, match="stop"):
        heft.convert("in", "out", progress=fail)
    assert (tmp_path / "cleaned").read_text() == "clean"
    assert no_children()


def test_an_interrupt_stops_a_child_that_writes_much(program):
    program("""
signal.signal(signal.SIGINT, lambda *_: sys.exit(4))
say(kind="progress", done=1, total=2)
while True:
    os.write(1, bytes(1 << 16))
""")

    def fail(done, total):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        heft.convert("in", "out", progress=fail)
    assert no_children()


def test_an_interrupt_leaves_nothing_behind(tmp_path):
    """SIGINT arrives while the real command waits for a vocabulary from a pipe."""
    source = write_safetensors(tmp_path / "in.safetensors", {"w": ("F32", [1], bytes(4))})
    os.mkfifo(tmp_path / "vocab.txt")
    before = sorted(os.listdir(tmp_path))

    def interrupt():
        with open(tmp_path / "vocab.txt", "wb"):  # waits until the command has opened the pipe
            os.kill(os.getpid(), signal.SIGINT)
            finished.wait()
    finished = threading.Event()
    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            heft.convert(source, tmp_path / "out.weights", vocab=tmp_path / "vocab.txt")
    finally:
        finished.set()
        helper.join()
    assert sorted(os.listdir(tmp_path)) == before
    assert no_children()
