"""Progress and interrupts of the command functions: a child is never left behind."""
import os
import signal
import subprocess
import sys
import threading
import time
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
# Runs until an interrupt, then takes its time to clean up.
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


def test_an_interrupted_child_need_not_wait_for_a_reader(program, tmp_path):
    """The child prints more than a pipe holds before it cleans up; the alarm ends it if that
    blocks."""
    program(f"""
def stop(number, frame):
    for pipe in (1, 2):
        try:
            os.write(pipe, bytes(1 << 20))
        except BrokenPipeError:
            pass
    pathlib.Path({str(tmp_path / "cleaned")!r}).write_text("clean")
    os._exit(4)
signal.signal(signal.SIGINT, stop)
signal.alarm(60)
say(kind="progress", done=1, total=2)
while True:
    time.sleep(0.01)
""")

    def fail(done, total):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        heft.convert("in", "out", progress=fail)
    assert (tmp_path / "cleaned").exists()
    assert no_children()


def test_an_interrupt_from_the_keyboard_reaches_the_child_once(tmp_path):
    """A terminal signals the whole process group; a second signal would end the child before it has
    cleaned up."""
    program = write_program(tmp_path / "program", f"""
def stop(number, frame):
    with open({str(tmp_path / "signals")!r}, "a") as file:
        file.write("x")
    time.sleep(0.5)
    os._exit(4)
signal.signal(signal.SIGINT, stop)
pathlib.Path({str(tmp_path / "ready")!r}).write_text("")
while True:
    time.sleep(0.01)
""")
    python = subprocess.Popen([sys.executable, "-c", f"""
import heft
from heft import _child
_child.COMMAND = {program!r}
heft.convert("in", "out")
"""], start_new_session=True, stderr=subprocess.PIPE)
    while not (tmp_path / "ready").exists() and python.poll() is None:
        time.sleep(0.01)
    os.killpg(python.pid, signal.SIGINT)
    assert b"KeyboardInterrupt" in python.communicate()[1]
    assert (tmp_path / "signals").read_text() == "x"


def test_an_interrupt_while_the_child_starts(tmp_path, monkeypatch):
    """The exception must not come before somebody knows the child."""
    program = write_program(tmp_path / "program", f"""
def stop(number, frame):
    pathlib.Path({str(tmp_path / "stopped")!r}).write_text("")
    os._exit(4)
signal.signal(signal.SIGINT, stop)
pathlib.Path({str(tmp_path / "ready")!r}).write_text("")
while True:
    time.sleep(0.01)
""")
    start = subprocess.Popen

    def started(*args, **options):
        child = start(*args, **options)
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        return child
    monkeypatch.setattr(_child, "COMMAND", program)
    monkeypatch.setattr(_child.subprocess, "Popen", started)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        heft.convert("in", "out")
    assert (tmp_path / "stopped").exists() and no_children()
    assert signal.getsignal(signal.SIGINT) is handler


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
