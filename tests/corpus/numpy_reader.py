#!/usr/bin/env python3
"""numpy_reader.py FILE: print the arrays of a .npy or .npz file as JSON, read by NumPy.

An example of a reader for run.py:
run.py --reader './numpy_reader.py {file}' --format npy --format npz --good"""
import hashlib
import json
import sys

import numpy as np


def described(name, array):
    letter = {"b": "bool", "i": "i", "u": "u", "f": "f", "c": "c"}[array.dtype.kind]
    bits = "" if letter == "bool" else array.dtype.itemsize * 8
    data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"name": name, "dtype": f"{letter}{bits}", "shape": list(array.shape),
            "sha256": hashlib.sha256(data).hexdigest()}


def main():
    content = np.load(sys.argv[1], allow_pickle=False)
    arrays = {"data": content} if isinstance(content, np.ndarray) else dict(content)
    print(json.dumps({"tensors": [described(n, a) for n, a in arrays.items()]}))


main()
