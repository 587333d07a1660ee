#!/usr/bin/env python3
"""package.py HOW FILE: measure the Python package heft and other ways to load arrays in Python.

load, load-torch, torch, npload, fromfile and readinto read all bytes into fresh memory five times,
and print the least seconds and the bytes; readinto uses all processors. The first times measure how
the host of a virtual machine provides memory. open opens FILE and reads a tensor, and prints
milliseconds. tensors prints nanoseconds per tensor for file[name].shape and file[name].numpy()."""
import mmap
import os
import sys
import threading
import time

HUGE = 2 << 20
TIMES = 5


def read_range(path, view):
    """Fill the view with the bytes at the same place of the file."""
    memory, at = view
    with open(path, "rb", buffering=0) as file:
        file.seek(at)
        while memory and (count := file.readinto(memory)):
            memory = memory[count:]


def readinto(path):
    size = os.path.getsize(path)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    view, count = memoryview(memory), len(os.sched_getaffinity(0))
    each = -(-size // count // HUGE) * HUGE
    threads = [threading.Thread(target=read_range, args=(path, (view[at:at + each], at)))
               for at in range(0, size, each)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return memory


def fromfile(path):
    import numpy
    return numpy.fromfile(path, "u1")


def npload(path):
    import numpy
    return numpy.load(path)


def torch(path):
    import torch as module
    return module.load(path, map_location="cpu")


def load(path, framework="numpy"):
    import heft
    return heft.load(path, framework)


LOADERS = {"load": load, "load-torch": lambda path: load(path, "torch"), "torch": torch,
           "npload": npload, "fromfile": fromfile, "readinto": readinto}
MODULES = {"load": ["heft", "numpy"], "load-torch": ["heft", "torch"], "torch": ["torch"],
           "npload": ["numpy"], "fromfile": ["numpy"], "open": ["heft", "numpy"],
           "tensors": ["heft", "numpy"]}


def per_tensor(names, use):
    begin = time.perf_counter()
    for name in names:
        use(name)
    return (time.perf_counter() - begin) / len(names) * 1e9


def seconds_of(loader, path):
    """Time a loader; the arrays are freed afterwards."""
    begin = time.perf_counter()
    arrays = loader(path)
    seconds = time.perf_counter() - begin
    del arrays
    return seconds


def measure(how, path):
    if how in LOADERS:
        return min(seconds_of(LOADERS[how], path) for _ in range(TIMES)), os.path.getsize(path)
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
