#!/usr/bin/env python3
"""gen_archives.py ROOT: write archives with a file of weights to ROOT/archives, for fuzzing.

check_archives.py says what they are."""
import gzip
import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile


def model():
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack("<6f", *range(6))


def tar(form):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as t:
        for name in "./model_config.yaml", "./model_weights.ckpt":
            data = model() if name.endswith("ckpt") else b"a: 1\n"
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def packed(before=b""):
    out = io.BytesIO(before)
    with zipfile.ZipFile(out, "a" if before else "w") as z:
        z.writestr("version", "2")
        z.writestr("w.safetensors", model())
        z.writestr("empty.safetensors.txt", "")
    return out.getvalue()


def main():
    folder = pathlib.Path(sys.argv[1], "archives")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in [("ustar.nemo", tar(tarfile.USTAR_FORMAT)),
                       ("pax.nemo", tar(tarfile.PAX_FORMAT)),
                       ("gzip.nemo", gzip.compress(tar(tarfile.USTAR_FORMAT), mtime=0)),
                       ("w.zip", packed()), ("w.llamafile", packed(b"MZqFpD='\n" + bytes(99)))]:
        (folder / name).write_bytes(data)


main()
