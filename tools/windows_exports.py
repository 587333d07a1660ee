#!/usr/bin/python3
"""Makes a module definition file for Windows from heft.map: the functions that heft.dll exports.

Usage: windows_exports.py HEFT.MAP OUTPUT"""

import pathlib
import re
import sys


def exports(text):
    """Returns the names that a version script exports."""
    return re.findall(r"\b(heft_\w+);", text)


def main():
    """Writes the file."""
    names = exports(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = "".join(f"    {name}\n" for name in names)
    pathlib.Path(sys.argv[2]).write_text(f"EXPORTS\n{lines}", encoding="utf-8")


if __name__ == "__main__":
    main()
