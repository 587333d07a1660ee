"""Small files and stand-ins for the command, for the tests of the command functions."""
import json
import pathlib
import struct
import sys


def write_safetensors(path, tensors, metadata=None):
    """Write {name: (dtype, shape, bytes)}."""
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def f32(*values):
    """Return the bytes of an f32 tensor."""
    return struct.pack(f"<{len(values)}f", *values)


def write_program(path, body):
    """Write a stand-in for the command: Python code that has the words in `words`."""
    pathlib.Path(path).write_text(
        f"#!{sys.executable}\nimport json, os, pathlib, signal, sys, time\nwords = sys.argv[1:]\n"
        f"def say(**members):\n    print(json.dumps(members), file=sys.stderr, flush=True)\n{body}")
    pathlib.Path(path).chmod(0o755)
    return str(path)
