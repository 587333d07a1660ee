# %% [markdown]
# Look at a model: what is in it, where the bytes are, how the values are spread, and what a
# smaller type changes. Cells begin with "# %%", which Jupyter, VS Code and Spyder understand.
# As a program: python3 look_at_a_model.py [MODEL] [FOLDER FOR THE PICTURES]; it needs NumPy and
# matplotlib.

# %% What is in it
import pathlib
import sys

import heft
import matplotlib
import numpy as np

if __name__ == "__main__" and "ipykernel" not in sys.modules:
    matplotlib.use("Agg")  # pictures go to files: no window
import matplotlib.pyplot as plt

arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
model = arguments[0] if arguments else "model.safetensors"
pictures = pathlib.Path(arguments[1] if len(arguments) > 1 else ".")
info = heft.info(model)
print(f"{model}: {info.format}, {info.tensors} tensors, {info.parameters:,} parameters")
for row in info.by_dtype:
    print(f"  {row.type or row.dtype}: {row.tensors} tensors, {row.bytes / 2**20:.1f} MiB")

# %% Where the bytes are
modules = sorted(info.modules, key=lambda m: m.bytes)[-12:]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.barh([m.name or "(top)" for m in modules], [m.bytes / 2**20 for m in modules])
axes.set(title="Bytes by module", xlabel="MiB")
figure.savefig(pictures / "bytes.svg")

# %% How the values are spread: heft stats reads every value once, and counts
stats = heft.stats(model)
matrices = [t for t in stats.tensors if len(t.shape) > 1 and t.std]
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot([t.std for t in matrices], marker=".")
axes.set(title="Standard deviation of each matrix", xlabel="matrix, in the order of the file",
         ylim=(0, None))
figure.savefig(pictures / "spread.svg")
wrong = [t.name for t in stats.tensors if t.nan or t.inf]
print("with NaN or infinity:", ", ".join(wrong) or "none")

# %% One tensor, read alone: the rest of the file is not touched
with heft.open(model) as file:
    name = max((n for n, t in file.items() if len(t.shape) > 1), key=lambda n: file[n].nbytes)
    values = file[name].to("f32").ravel()
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.hist(values, bins=101)
axes.set(title=name, xlabel="value", ylabel="elements")
figure.savefig(pictures / "values.svg")

# %% What bf16 would change
smaller = pictures / "smaller.safetensors"
heft.convert(model, smaller, cast={"*": "bf16"}, force=True)
with heft.open(smaller) as file:
    loss = np.abs(file[name].to("f32").ravel() - values)
print(f"{name} as bf16: at most {loss.max():.2g} off, {loss.mean():.2g} on average")
