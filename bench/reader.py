#!/usr/bin/env python3
"""reader.py make|read FILE [MIB]: measure readers in Python: .npy and .npz with NumPy, .pt with
PyTorch.

make writes MIB MiB of f32, in arrays of 16 MiB if the format allows several; .legacy.pt is the
stream that PyTorch wrote before 1.6.
read reads all arrays into fresh memory and prints seconds and bytes."""
import os
import sys
import time

MIB, EACH = 1 << 20, 16


def arrays(mib, new):
    return {f"layers.{i}.weight": new((EACH * 512, 512)) for i in range(mib // EACH)}


def with_numpy(verb, path, mib):
    import numpy
    if verb == "make":
        if path.endswith(".npy"):
            numpy.save(path, numpy.full((mib * 512, 512), 0.5, "f4"))
        else:
            numpy.savez(path, **arrays(mib, lambda shape: numpy.full(shape, 0.5, "f4")))
    elif path.endswith(".npy"):
        return numpy.load(path).nbytes
    else:
        with numpy.load(path) as found:
            return sum(a.nbytes for a in [found[name] for name in found.files])
    return 0


def with_torch(verb, path, mib):
    import torch
    if verb == "make":
        torch.save(arrays(mib, lambda shape: torch.full(shape, 0.5)), path,
                   _use_new_zipfile_serialization=not path.endswith(".legacy.pt"))
        return 0
    return sum(t.numel() * t.element_size() for t in torch.load(path, map_location="cpu").values())


def main():
    verb, path = sys.argv[1:3]
    module, work = ("torch", with_torch) if path.endswith(".pt") else ("numpy", with_numpy)
    try:
        __import__(module)
    except ImportError:
        sys.exit(f"{module} is not installed")
    begin = time.perf_counter()
    size = work(verb, path, int(sys.argv[3]) if verb == "make" else 0)
    print(time.perf_counter() - begin, size or os.path.getsize(path))


if __name__ == "__main__":
    main()
