"""llama_library.py - models and vocabularies in the library of llama.cpp that npm ships."""
import ctypes

import ggml_mixes
import numpy as np


class Raw(ctypes.Structure):
    """Options by value, with more bytes than those of the library; offsets are below."""
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]

    def set(self, at, value, kind=ctypes.c_int32):
        kind.from_buffer(self, at).value = value


class Batch(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("pointers", ctypes.c_void_p * 6)]


# Offsets in the options of version 0.5.0.
VOCAB_ONLY = 72
CONTEXT, BATCH, OUTPUTS, THREADS, POOLING, FLASH = 0, 4, 20, 28, 44, 52
TYPE_K, TYPE_V, EMBEDDINGS = 104, 108, 128


class Model:
    def __init__(self, llama, path, vocab_only=False):
        self.lib, self.context = llama.lib, None
        lib = self.lib
        for name in ("llama_model_load_from_file", "llama_model_get_vocab", "llama_init_from_model",
                     "llama_get_memory"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("llama_model_default_params", "llama_context_default_params"):
            getattr(lib, name).restype = Raw
        lib.llama_batch_get_one.restype = Batch
        lib.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        lib.llama_get_embeddings_ith.restype = ctypes.POINTER(ctypes.c_float)
        options = lib.llama_model_default_params()
        options.set(VOCAB_ONLY, vocab_only, ctypes.c_bool)
        llama.messages.clear()
        self.model = lib.llama_model_load_from_file(str(path).encode(), options)
        if not self.model:
            raise ValueError("".join(llama.messages[-8:]))
        self.vocab = ctypes.c_void_p(lib.llama_model_get_vocab(ctypes.c_void_p(self.model)))

    def close(self):
        if self.context:
            self.lib.llama_free(ctypes.c_void_p(self.context))
        self.lib.llama_model_free(ctypes.c_void_p(self.model))

    def tokens(self, text, special=True):
        raw = text.encode()
        out = (ctypes.c_int32 * (len(raw) + 16))()
        count = self.lib.llama_tokenize(self.vocab, raw, len(raw), out, len(out), special, True)
        return list(out[:count])

    def run(self, ids, embeddings=False):
        """Return the numbers of each token: logits, or the embedding."""
        options = self.lib.llama_context_default_params()
        for at, value in ((CONTEXT, 256), (BATCH, 256), (THREADS, 1), (THREADS + 4, 1), (FLASH, 0),
                          (OUTPUTS, 256), (OUTPUTS + 4, 256), (TYPE_K, 0), (TYPE_V, 0)):
            options.set(at, value)
        options.set(EMBEDDINGS, embeddings, ctypes.c_bool)
        if embeddings:
            options.set(POOLING, 0)
        context = ctypes.c_void_p(self.lib.llama_init_from_model(ctypes.c_void_p(self.model),
                                                                 options))
        if not context:
            raise ValueError("llama.cpp makes no context")
        rows = []
        steps = [ids] if embeddings else [[i] for i in ids]
        for step in steps:
            array = (ctypes.c_int32 * len(step))(*step)
            call = self.lib.llama_encode if embeddings else self.lib.llama_decode
            if call(context, self.lib.llama_batch_get_one(array, len(step))):
                raise ValueError("llama.cpp computes nothing")
            rows += [self.row(context, k, embeddings) for k in range(len(step))]
        self.lib.llama_free(context)
        return np.stack(rows)

    def row(self, context, k, embeddings):
        if embeddings:
            got = self.lib.llama_get_embeddings_ith(context, k)
            width = self.lib.llama_model_n_embd(ctypes.c_void_p(self.model))
        else:
            got = self.lib.llama_get_logits_ith(context, k)
            width = self.lib.llama_vocab_n_tokens(self.vocab)
        return np.ctypeslib.as_array(got, (width,)).copy()


def open_llama(directory):
    """Load the library and its processors' code; None where npm has none for this machine."""
    bins = __import__("pathlib").Path(directory) / ggml_mixes.BINS
    if not bins.exists():
        return None
    llama = ggml_mixes.Llama(directory)
    ggml = ctypes.CDLL(str(next(bins.glob("libggml.v*.so"))))
    ggml.ggml_backend_load_all_from_path(str(bins).encode())
    return llama
