#!/usr/bin/env python3
"""gen_samples.py STAMP ROOT GENERATOR...: run the generators on an empty ROOT, then touch STAMP."""
import pathlib
import shutil
import subprocess
import sys


def main():
    stamp, root, *generators = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for generator in generators:
        subprocess.run([sys.executable, generator, root], check=True)
    stamp.touch()


main()
