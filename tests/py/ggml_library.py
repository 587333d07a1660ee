"""ggml_library.py - blocks of ggml's types, encoded and decoded by Heft's library, and by ggml's as
npm ships it."""
import ctypes
import pathlib

import ggml_blocks
import numpy as np

LIBRARY = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/libggml-base.so"


class Text(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_char_p), ("len", ctypes.c_size_t)]


def pointer(array):
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


def blocks_for(name, rows):
    """Return memory for the blocks of each row."""
    _, elements, size = ggml_blocks.BLOCKS[name]
    return np.zeros((len(rows), rows.shape[1] // elements * size), np.uint8)


class Heft:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.heft_dtype_find.argtypes = [Text]
        self.lib.heft_dtype_cast.restype = ctypes.c_bool

    def dtype(self, name):
        return self.lib.heft_dtype_find(Text(name.encode(), len(name)))

    def decode(self, name, data, count):
        """Return the bits of the numbers of blocks."""
        out = (ctypes.c_uint32 * count)()
        if not self.lib.heft_dtype_cast(out, self.dtype("f32"), data, self.dtype(name),
                                        ctypes.c_uint64(count)):
            raise ValueError(f"heft does not decode {name}")
        return out

    def encode(self, name, rows, importance=None):
        kind, out = self.dtype(name), blocks_for(name, rows)
        for row, to in zip(rows, out):
            if self.lib.heft_block_encode(pointer(to), ctypes.c_size_t(len(to)), kind, pointer(row),
                                          ctypes.c_size_t(row.size), pointer(importance), None):
                raise ValueError(f"heft does not encode {name}")
        return out


class Ggml:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.ggml_quantize_chunk.restype = ctypes.c_size_t

    def decode(self, name, data, count):
        out = (ctypes.c_uint32 * count)()
        function = getattr(self.lib, "dequantize_row_" + name.replace("_k", "_K"))
        function(data, out, ctypes.c_int64(count))
        return out

    def encode(self, name, rows, importance=None):
        out = blocks_for(name, rows)
        if name == "q8_k":  # ggml has no other function for a type that files do not have
            self.lib.quantize_row_q8_K_ref(pointer(rows), pointer(out), ctypes.c_int64(rows.size))
            return out
        self.lib.ggml_quantize_chunk(ggml_blocks.BLOCKS[name][0], pointer(rows), pointer(out),
                                     ctypes.c_int64(0), ctypes.c_int64(len(rows)),
                                     ctypes.c_int64(rows.shape[1]), pointer(importance))
        return out


def open_both(heft, directory):
    """Return both libraries, or None where npm has no ggml for this machine."""
    library = pathlib.Path(directory, LIBRARY)
    return (Heft(heft), Ggml(str(library))) if library.exists() else None
