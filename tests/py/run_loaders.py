#!/usr/bin/env python3
"""run_loaders.py FOLDER: load each file in a folder with every loader that is installed.

Prints one JSON document: for each file, the loaders under which the file made a folder, or a file,
"executed" in the current directory. Hostile files may end the process that loads them: another
process goes on with the next loader."""
import bz2
import gzip
import importlib
import json
import lzma
import os
import pathlib
import pickle
import resource
import signal
import sys
import tarfile
import warnings
import zipfile
import zlib

MARKER = "executed"
SECONDS = 3  # The processor's time: a loaded machine does not end a loader earlier.
MEMORY = 2 << 30  # Memory that a hostile length reserves takes time.
TOGETHER = 16  # files that one process loads: what they leave in memory slows the next ones


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


warnings.simplefilter("ignore")
np, torch, joblib, pandas = (optional(n) for n in ("numpy", "torch", "joblib", "pandas"))
zstandard = optional("zstandard")


def many(file):
    """Unpickle as long as there are pickles, as programs do that dump several."""
    for _ in range(8):
        pickle.load(file)


def each_of_numpy(path):
    loaded = np.load(path, allow_pickle=True)
    for name in getattr(loaded, "files", []):
        attempt(lambda name=name: loaded[name])


def several_of_numpy(file):
    with file:
        for _ in range(8):
            np.load(file, allow_pickle=True)


def pickle_then_numpy(file):
    with file:
        pickle.load(file)
        for _ in range(2):
            np.load(file, allow_pickle=True)


def numpy_then_pickle(file):
    with file:
        np.load(file)
        many(file)


def each_of_zip(path):
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            attempt(lambda info=info: pickle.load(archive.open(info)))
            attempt(lambda info=info: several_of_numpy(archive.open(info)))


def each_of_tar(path, **how):
    with tarfile.open(path, **how) as archive:
        for info in archive:
            attempt(lambda info=info: pickle.load(archive.extractfile(info)))


def zlib_bytes(path):
    """Decompress as far as the bytes go."""
    return zlib.decompressobj().decompress(path.read_bytes())


def several_of_torch(path, opened):
    """Load from one open file as long as there are files in it."""
    with opened(path, "rb") as file:
        for _ in range(3):
            torch.load(file, map_location="cpu")


LOADERS = {
    "pickle": lambda p: many(open(p, "rb")),
    "pickle in Python": lambda p: pickle._Unpickler(open(p, "rb")).load(),
    "pickle, latin1": lambda p: pickle.load(open(p, "rb"), encoding="latin1"),
    "gzip": lambda p: many(gzip.open(p)),
    "bz2": lambda p: many(bz2.open(p)),
    "lzma": lambda p: many(lzma.open(p)),
    "lzma alone": lambda p: many(lzma.open(p, format=lzma.FORMAT_ALONE)),
    "zlib": lambda p: pickle.loads(zlib_bytes(p)),
    "zipfile": each_of_zip,
    "tarfile": each_of_tar,
    "tarfile, ignoring zeros": lambda p: each_of_tar(p, ignore_zeros=True),
}
if np:
    LOADERS["numpy"] = each_of_numpy
    LOADERS["numpy, several"] = lambda p: several_of_numpy(open(p, "rb"))
    LOADERS["numpy, several of gzip"] = lambda p: several_of_numpy(gzip.open(p))
    LOADERS["numpy, then pickle"] = lambda p: numpy_then_pickle(open(p, "rb"))
    LOADERS["pickle, then numpy"] = lambda p: pickle_then_numpy(open(p, "rb"))
    LOADERS["pickle of gzip, then numpy"] = lambda p: pickle_then_numpy(gzip.open(p))
    LOADERS["numpy of gzip, then pickle"] = lambda p: numpy_then_pickle(gzip.open(p))
if torch:
    LOADERS["torch"] = lambda p: torch.load(p, map_location="cpu")
    LOADERS["torch, several"] = lambda p: several_of_torch(p, open)
    LOADERS["torch, several of gzip"] = lambda p: several_of_torch(p, gzip.open)
    package = optional("torch.package")
    LOADERS["torch.package"] = lambda p: package.PackageImporter(p).load_pickle("m", "m.pkl")
    LOADERS["torch, gzip"] = lambda p: torch.load(gzip.open(p), map_location="cpu")
if joblib:
    LOADERS["joblib"] = joblib.load
if pandas:
    LOADERS["pandas"] = pandas.read_pickle
if zstandard:
    LOADERS["zstd"] = lambda p: pickle.loads(zstandard.open(p).read())


def attempt(load):
    try:
        load()
    except BaseException:  # whatever a hostile file raises
        pass


def executed():
    try:
        if os.path.isdir(MARKER):
            os.rmdir(MARKER)
        else:
            os.remove(MARKER)  # torch.save() has made a file
        return True
    except OSError:
        return False


def child(paths, first, out):
    """Write a line for each file: a letter for each loader, "1" if it ran the file.  The first file
    begins with the loader of number `first`."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for path in paths:
        for load in list(LOADERS.values())[first:]:
            # A hostile file may not end, or wait; the next process goes on.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(60 * SECONDS)
            attempt(lambda load=load, path=path: load(path))
            os.write(out, b"1" if executed() else b"0")
        os.write(out, b"\n")
        first = 0
    os._exit(0)


def run(paths, first):
    """Load the files in a new process; return a line for each, the last of which is shorter if a
    loader ended the process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reader)
        child(paths, first, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        lines = pipe.read().decode().split("\n")
    os.waitpid(pid, 0)
    return lines[:len(paths)]


def run_all(paths):
    """Return the loaders that ran each file.  After a loader that ended its process, the file goes
    on with the next loader: the one that would run it may be among them."""
    found = {path.name: "" for path in paths}
    while paths:
        lines = run(paths[:TOGETHER], len(found[paths[0].name]))
        for path, line in zip(paths, lines):
            found[path.name] += line
        last = paths[len(lines) - 1].name
        if len(found[last]) < len(LOADERS):
            found[last] += "1" if executed() else "0"
        paths = paths[len(lines) - (len(found[last]) < len(LOADERS)):]
    return {name: [loader for loader, ran in zip(LOADERS, line) if ran == "1"]
            for name, line in found.items()}


if __name__ == "__main__":
    files = sorted(pathlib.Path(sys.argv[1]).iterdir())
    print(json.dumps({"loaders": sorted(LOADERS), "executed": run_all(files)}))
