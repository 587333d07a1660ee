#!/usr/bin/env python3
"""package.py HOW FILE: measure the Python package heft and other ways to load arrays in Python.

load, load-torch, torch, fromfile and readinto read all bytes into fresh memory and print seconds
and bytes. open opens FILE and reads a tensor, and prints milliseconds. tensors prints nanoseconds
per tensor for file[name].shape and file[name].numpy()."""
import os
import sys
import time


def readinto(path):
    data = bytearray(os.path.getsize(path))
    with open(path, "rb", buffering=0) as file:
        view, done = memoryview(data), 0
        while count := file.readinto(view[done:]):
            done += count


def fromfile(path):
    import numpy
    numpy.fromfile(path, "u1")


def torch(path):
    import torch as module
    module.load(path, map_location="cpu")


def load(path, framework="numpy"):
    import heft
    heft.load(path, framework)


LOADERS = {"load": load, "load-torch": lambda path: load(path, "torch"), "torch": torch,
           "fromfile": fromfile, "readinto": readinto}
MODULES = {"load": ["heft", "numpy"], "load-torch": ["heft", "torch"], "torch": ["torch"],
           "fromfile": ["numpy"], "open": ["heft", "numpy"], "tensors": ["heft", "numpy"]}


def per_tensor(names, use):
    begin = time.perf_counter()
    for name in names:
        use(name)
    return (time.perf_counter() - begin) / len(names) * 1e9


def measure(how, path):
    begin = time.perf_counter()
    if how in LOADERS:
        LOADERS[how](path)
        return time.perf_counter() - begin, os.path.getsize(path)
    import heft
    file = heft.open(path)
    names = file.keys()
    if how == "open":
        begin = time.perf_counter()
        other = heft.open(path)
        other[names[0]].numpy()
        return ((time.perf_counter() - begin) * 1e3, )
    per_tensor(names, lambda name: file[name].numpy())
    return (per_tensor(names, lambda name: file[name].shape),
            per_tensor(names, lambda name: file[name].numpy()))


def main():
    how, path = sys.argv[1:3]
    for module in MODULES.get(how, []):
        try:
            __import__(module)
        except ImportError:
            sys.exit(f"{module} is not installed")
    print(*measure(how, path))


if __name__ == "__main__":
    main()
