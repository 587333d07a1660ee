"""lora_single_file.py - adapters for a single file of Stable Diffusion, with the names of diffusers
and those that kohya's scripts make of them; see check_lora.py."""
import pathlib
import tempfile

import map_diffusion_models as diffusion

KOHYA = {"unet": "lora_unet_", "text_encoder": "lora_te1_", "text_encoder_2": "lora_te2_"}


def kohya(module, first):
    component, name = module.split(".", 1)
    return first.get(component, KOHYA[component]) + name.replace(".", "_")


def modules(m):
    """Return {module in diffusers: tensor of the single file}, for weights that adapters change."""
    return {left.removesuffix(".weight"): right for left, right in m.renamed.items()
            if left.endswith(".weight") and m.left[left][1].ndim > 1 and
            not left.startswith("vae.") and "embedding" not in left.split(".")[-2]}


def check(c, title, m, name_of, names):
    """Merge an adapter that changes every weight; c is check_lora."""
    a, values = c.Adapter(), {n: x for n, (_, x) in m.right.items()}
    for module, tensor in modules(m).items():
        rows, columns, *kernel = values[tensor].shape
        a.linear(name_of(module), tensor, rows, columns, rank=2, scale=1.0, names=names, prefix="",
                 shape_a=(2, columns, *kernel), shape_b=(rows, 2, *(1 for _ in kernel)))
        shape = values[tensor].shape
        name, change = a.steps.pop()
        a.step(name, lambda w, f, change=change, shape=shape:
               change(w.reshape(shape[0], -1), f).reshape(shape))
    a.apply(values)
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        base, out = folder / "base.safetensors", folder / "out.safetensors"
        base.write_bytes(c.models.pack({n: c.stored(x, "BF16") for n, (_, x) in m.right.items()}))
        (folder / "a.safetensors").write_bytes(c.models.pack(a.tensors))
        ran = c.heft("convert", "--lora", folder / "a.safetensors", base, out)
        if ran.returncode:
            return title, [ran.stderr]
        got = c.models.unpack(out)
        differ = [n for n, x in values.items()
                  if not c.np.array_equal(c.value(got[n]), c.value(c.stored(x, "BF16")))]
        return title, [f"{n} differs" for n in differ] + (
            [] if got.keys() == values.keys() else ["other tensors"])


def check_fused(c):
    """The second text encoder of SDXL has q, k and v in one tensor, which no name is for."""
    m, a = diffusion.sdxl(), c.Adapter()
    a.linear("text_model_encoder_layers_0_self_attn_q_proj", "", 4, 4, prefix="lora_te2_",
             names=("lora_down", "lora_up"))
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "base.safetensors").write_bytes(
            c.models.pack({n: c.stored(x, "BF16") for n, (_, x) in m.right.items()}))
        (folder / "a.safetensors").write_bytes(c.models.pack(a.tensors))
        ran = c.heft("convert", "--lora", folder / "a.safetensors", folder / "base.safetensors",
                     folder / "out.safetensors")
        is_refused = ran.returncode == 2 and "match nothing in the model" in ran.stderr
        return "refused: a part of a fused tensor", [] if is_refused else [ran.stderr]


def results(c):
    old, new = ("lora_down", "lora_up"), ("lora_A", "lora_B")
    for title, make, first in (("Stable Diffusion 1.5", diffusion.sd15,
                                {"text_encoder": "lora_te_"}), ("SDXL", diffusion.sdxl, {})):
        yield check(c, f"kohya's names, one file of {title}", make(),
                    lambda module, first=first: kohya(module, first), old)
        yield check(c, f"names of diffusers, one file of {title}", make(), lambda module: module,
                    new)
    yield check_fused(c)
