"""Run the command of the package as a child process, and read its messages while it works."""
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import threading

COMMAND = str(pathlib.Path(__file__).parent / "bin" / "heft")


class _Messages:
    """Makes messages of what stderr delivers."""

    def __init__(self, on_message):
        self.on_message, self.rest = on_message, b""

    def feed(self, data):
        """Pass on the messages that data completes; no data: the end."""
        *lines, self.rest = (self.rest + (data or b"\n")).split(b"\n")
        for line in filter(None, lines):
            self.on_message(self._message(line))

    @staticmethod
    def _message(line):
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict) and "kind" in message:
            return message
        # The loader, a sanitizer or a preloaded library writes text.
        return {"kind": "info", "text": line.decode(errors="replace")}


def _stop(child):
    """Interrupt the child and wait until it has removed what it wrote.

    The pipes are closed, so that the child cannot wait for a reader; another interrupt makes it end
    at once."""
    child.stdout.close()
    child.stderr.close()
    child.send_signal(signal.SIGINT)
    while True:
        try:
            child.wait()
            return
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)


def _read(child, on_message):
    """Pass on each message; return all of stdout."""
    out, messages = [], _Messages(on_message)
    with selectors.DefaultSelector() as pipes:
        for pipe in (child.stdout, child.stderr):
            pipes.register(pipe, selectors.EVENT_READ)
        while pipes.get_map():
            for key, _ in pipes.select():
                data = os.read(key.fd, 1 << 16)
                if not data:
                    pipes.unregister(key.fileobj)
                if key.fileobj is child.stderr:
                    messages.feed(data)
                else:
                    out.append(data)
    return b"".join(out)


class _HeldInterrupt:
    """Holds an interrupt back until the end of the block. While a child starts there is no object
    yet by which an exception could stop the child."""

    def __enter__(self):
        self.handler, self.frames = signal.getsignal(signal.SIGINT), []
        self.holds = callable(self.handler) and (threading.current_thread() is
                                                 threading.main_thread())
        if self.holds:
            signal.signal(signal.SIGINT, lambda number, frame: self.frames.append(frame))

    def __exit__(self, *_):
        if self.holds:
            signal.signal(signal.SIGINT, self.handler)
        if self.frames:
            self.handler(signal.SIGINT, self.frames[0])


def run(words, on_message):
    """Run the command; return (exit status, stdout). on_message gets each message as a dict.

    The child has a process group of its own: an interrupt from the keyboard reaches Python only,
    which then interrupts the child once, so that the child has the time to clean up."""
    child = None
    try:
        with _HeldInterrupt():
            child = subprocess.Popen([COMMAND, *words], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     process_group=0)
        out = _read(child, on_message)
        status = child.wait()
    except BaseException:
        if child:
            _stop(child)
        raise
    child.stdout.close()
    child.stderr.close()
    return status, out


class _Percentage:
    """A line with the percentage on stderr, for progress=True without tqdm."""

    def __init__(self, label):
        self.label, self.drawn = label, False

    def __call__(self, done, total):
        self.drawn = True
        sys.stderr.write(f"\r{self.label}: {100 * done // max(total, 1):3d}%")
        sys.stderr.flush()

    def close(self):
        if self.drawn:
            sys.stderr.write("\n")


class _Tqdm:
    def __init__(self, tqdm, label):
        self.make = lambda: tqdm(desc=label, unit="B", unit_scale=True)
        self.bar = None

    def __call__(self, done, total):
        self.bar = self.bar or self.make()
        self.bar.total = total
        self.bar.update(done - self.bar.n)

    def close(self):
        if self.bar is not None:
            self.bar.close()


class Progress:
    """What `progress` stands for: nothing, a callable of (done, total), or True for a bar."""

    def __init__(self, progress, label):
        self.call, self.close, self.total = None, lambda: None, None
        if progress is True:
            try:
                from tqdm import tqdm
                self.call = _Tqdm(tqdm, label)
            except ImportError:
                self.call = _Percentage(label)
            self.close = self.call.close
        elif callable(progress):
            self.call = progress
        elif progress not in (None, False):
            raise TypeError("progress must be a callable, True or None")

    def step(self, done, total):
        self.total = total
        if self.call:
            self.call(done, total)

    def finish(self):
        """Report the end of work that took long enough to report anything."""
        if self.total is not None:
            self.step(self.total, self.total)
