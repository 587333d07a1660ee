"""commands.py - run heft commands; tests/commands.c runs hundreds in one process."""
import os
import subprocess
import tempfile
import threading


class Server:
    """A process that runs commands in sequence; `program` is a path, or a list of words."""

    def __init__(self, program):
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        files = [self.out.fileno(), self.err.fileno()]
        words = program if isinstance(program, list) else [program]
        self.process = subprocess.Popen([*words, *map(str, files)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, pass_fds=files)

    def run(self, args):
        """Run a command; return the exit status, or None if the process ended."""
        words = [b"heft", *map(os.fsencode, args)]
        try:
            self.process.stdin.write(b"%d\n" % len(words) + b"".join(w + b"\0" for w in words))
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = self.process.stdout.readline()
        return int(answer) if answer else None

    def output_of(self, file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Commands:
    """Run commands with Heft, or with tests/commands.c and a server process per thread."""

    def __init__(self, program):
        self.program, self.own, self.servers = program, threading.local(), []

    def run(self, *args, text=True):
        """Run a command like subprocess.run(capture_output=True)."""
        server = getattr(self.own, "server", None)
        if not server:
            server = self.own.server = Server(self.program)
            self.servers.append(server)
        status = server.run(args)
        if status is None:  # a crash or a sanitizer report
            self.own.server = None
            self.servers.remove(server)
            status = server.end() or -1
        out, err = server.output_of(server.out), server.output_of(server.err)
        if text:
            out, err = out.decode(errors="surrogateescape"), err.decode(errors="surrogateescape")
        return subprocess.CompletedProcess(args, status, out, err)

    def end(self):
        """End the servers; return True if a server failed at exit, for example because of a
        leak. Print the output of failed servers as comments of TAP."""
        failed = [s for s in self.servers if s.end()]
        for server in failed:
            for line in server.output_of(server.err).decode(errors="replace").splitlines():
                print("#", line)
        self.servers = []
        return bool(failed)
