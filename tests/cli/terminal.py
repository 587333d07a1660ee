"""terminal.py COMMAND...: run a command on a terminal and print the terminal's output.

Control characters are made visible. The exit status is that of the command."""
import fcntl
import os
import pty
import struct
import sys
import termios


def resize(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def run(args, columns=80, later=None, pager="cat"):
    """Run on a terminal of `columns`, of `later` columns after the first output; return (output,
    status). The pager None stands for the default of heft."""
    pid, fd = pty.fork()
    if pid == 0:
        resize(0, columns)
        if pager and not os.environ.keys() & {"HEFT_PAGER", "PAGER"}:
            os.environ["HEFT_PAGER"] = pager
        os.execvp(args[0], args)
    seen = b""
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        if later and not seen:
            resize(fd, later)
        seen += piece
    status = os.waitpid(pid, 0)[1]
    return seen.decode(errors="backslashreplace").replace("\r\n",
                                                          "\n"), os.waitstatus_to_exitcode(status)


def main(args):
    text, code = run(args)
    print(text.replace("\x1b", "^[").replace("\r", "^M"), end="")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
