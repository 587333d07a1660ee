"""blends.py - figures of models that are blended."""
import os
import subprocess

from adapters import SIZE, write
from harness import HEFT, measure_in_turns, read_all, speed

METHODS = {
    "linear": ["--method", "linear"],
    "slerp": ["--method", "slerp"],
    "ties, density 0.2": ["--method", "ties", "--density", "0.2"],
    "dare_ties, density 0.2": ["--method", "dare_ties", "--density", "0.2"],
}


def blending(r, inputs, formats, quick):
    """heft blend of two models in bf16 with two threads, compared with cp of the output; page cache
    warm. All methods but linear have one of the models as the base."""
    if "safetensors" not in formats:
        return
    layers = 1 if quick else 8
    base, other, out, copy, kept = (inputs.path(f"{n}.safetensors")
                                    for n in ("base", "other", "out", "copy", "kept"))
    for path in (base, other):
        write(path, {f"layers.{i}.weight": [SIZE, SIZE] for i in range(layers)})
        read_all(path)
    for name, words in METHODS.items():
        models = [base, other] if name == "linear" else ["--base", base, other]
        blend = [HEFT, "blend", "--no-sync", "--threads", "2", *words, *models, out]
        subprocess.run(blend, check=True, stderr=subprocess.DEVNULL)
        os.rename(out, kept)
        took = measure_in_turns(3, {
            "heft": lambda: inputs.timed(*blend, targets=(copy, out)),
            "cp": lambda: inputs.timed("cp", kept, copy, targets=(copy, out))})
        r.faster(name, took["heft"], took["cp"], "cp",
                 own=(speed(os.path.getsize(kept), took["heft"]), "GB/s"))
        inputs.drop(out, copy, kept)
    inputs.drop(base, other)
