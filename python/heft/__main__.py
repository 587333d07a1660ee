"""python -m heft: the command of the package, with the same words."""
import os
import sys

from ._child import COMMAND


def main():
    """Become the command."""
    os.execv(COMMAND, ["heft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
