"""ggml_mixes.py - llama_model_quantize of the libraries that npm ships: whole files, any mix."""
import ctypes
import pathlib

import numpy

BINS = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
NO_TYPE = 43  # as many types as ggml has


class Importance(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Override(ctypes.Structure):
    _fields_ = [("pattern", ctypes.c_char_p), ("type", ctypes.c_int)]


class Options(ctypes.Structure):
    _fields_ = [("threads", ctypes.c_int32), ("file_type", ctypes.c_int), ("output", ctypes.c_int),
                ("embedding", ctypes.c_int), ("requantize", ctypes.c_bool),
                ("quantize_output", ctypes.c_bool), ("only_copy", ctypes.c_bool),
                ("pure", ctypes.c_bool), ("keep_split", ctypes.c_bool), ("dry_run", ctypes.c_bool),
                ("importance", ctypes.c_void_p), ("metadata", ctypes.c_void_p),
                ("overrides", ctypes.c_void_p), ("layers", ctypes.c_void_p),
                ("buffer", ctypes.c_size_t)]


LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Llama:
    def __init__(self, directory):
        bins = pathlib.Path(directory) / BINS
        for name in ("libggml-base.so", "libggml.v*.so"):
            for path in bins.glob(name):
                ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(str(next(bins.glob("libllama.v*.so"))))
        self.lib.llama_model_quantize.restype = ctypes.c_uint32
        self.lib.llama_model_quantize_default_params.restype = Options
        self.messages = []
        self.log = LOG(lambda level, line, ctx: self.messages.append(line.decode("utf-8", "replace")))
        self.lib.llama_log_set(self.log, None)

    def quantize(self, source, target, file_type, importance=None, overrides=(), **options):
        """Write the quantised file; raise ValueError with the messages if the library refuses."""
        o = self.lib.llama_model_quantize_default_params()
        o.threads, o.file_type = 2, file_type
        for key, v in options.items():
            setattr(o, key, v)
        kept = []
        if importance:
            rows = (Importance * (len(importance) + 1))()
            for row, (name, (sums, counts)) in zip(rows, importance.items()):
                means = numpy.ascontiguousarray(sums / counts, numpy.float32)
                kept.append(means)
                row.name, row.data, row.size = name.encode(), means.ctypes.data, means.size
            o.importance = ctypes.cast(rows, ctypes.c_void_p)
        if overrides:
            list_ = (Override * (len(overrides) + 1))()
            for row, (pattern, number) in zip(list_, overrides):
                row.pattern, row.type = pattern.encode(), number
            o.overrides = ctypes.cast(list_, ctypes.c_void_p)
        self.messages.clear()
        if self.lib.llama_model_quantize(str(source).encode(), str(target).encode(),
                                         ctypes.byref(o)):
            raise ValueError("".join(self.messages))
