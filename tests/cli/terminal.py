"""Runs a command with stdout and stderr on a terminal and prints what appears there, with control
characters made visible; exits as the command does.

    python3 terminal.py COMMAND..."""
import os
import pty
import sys


def main(args):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(args[0], args)
    seen = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    status = os.waitpid(pid, 0)[1]
    text = seen.decode(errors="backslashreplace").replace("\r\n", "\n").replace("\x1b", "^[")
    print(text.replace("\r", "^M"), end="")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
