"""map_diffusion_models.py: small models with the names of diffusers, and the single files and LoRA
that other programs use; see map_models.py."""
import numpy as np

from map_models import Model


def both(m, left, right, *shape):
    m.same(left + ".weight", right + ".weight", *shape)
    m.same(left + ".bias", right + ".bias", shape[0])


def resnet(m, left, right, shortcut):
    names = [("norm1", "in_layers.0"), ("conv1", "in_layers.2"), ("time_emb_proj", "emb_layers.1"),
             ("norm2", "out_layers.0"), ("conv2", "out_layers.3")]
    for a, b in names + [("conv_shortcut", "skip_connection")] * shortcut:
        both(m, f"{left}.{a}", f"{right}.{b}", *((4,) if "norm" in a else (4, 2, 1, 1)))


def attention(m, left, right):
    both(m, left + ".norm", right + ".norm", 4)
    for name in ("proj_in", "transformer_blocks.0.attn1.to_q", "transformer_blocks.1.ff.net.2"):
        both(m, f"{left}.{name}", f"{right}.{name}", 4, 3)


def unet(m, levels, has_down, has_up):
    """Blocks are counted through: a level has two steps down and a resampling, and three up."""
    to, block = "model.diffusion_model.", 1
    both(m, "unet.conv_in", to + "input_blocks.0.0", 4, 2, 1, 1)
    for i in range(levels):
        for j in range(2):
            resnet(m, f"unet.down_blocks.{i}.resnets.{j}", f"{to}input_blocks.{block}.0", j == 0)
            if has_down(i):
                attention(m, f"unet.down_blocks.{i}.attentions.{j}", f"{to}input_blocks.{block}.1")
            block += 1
        if i < levels - 1:
            both(m, f"unet.down_blocks.{i}.downsamplers.0.conv", f"{to}input_blocks.{block}.0.op",
                 2, 2, 1, 1)
            block += 1
    resnet(m, "unet.mid_block.resnets.0", to + "middle_block.0", False)
    attention(m, "unet.mid_block.attentions.0", to + "middle_block.1")
    resnet(m, "unet.mid_block.resnets.1", to + "middle_block.2", False)
    block = 0
    for i in range(levels):
        for j in range(3):
            resnet(m, f"unet.up_blocks.{i}.resnets.{j}", f"{to}output_blocks.{block}.0", True)
            if has_up(i):
                attention(m, f"unet.up_blocks.{i}.attentions.{j}", f"{to}output_blocks.{block}.1")
            if j == 2 and i < levels - 1:
                both(m, f"unet.up_blocks.{i}.upsamplers.0.conv",
                     f"{to}output_blocks.{block}.{1 + has_up(i)}.conv", 2, 2, 1, 1)
            block += 1
    for a, b in (("time_embedding.linear_1", "time_embed.0"),
                 ("time_embedding.linear_2", "time_embed.2"), ("conv_norm_out", "out.0"),
                 ("conv_out", "out.2")):
        both(m, "unet." + a, to + b, *((4,) if "norm" in a else (4, 2)))


def vae_resnet(m, left, right):
    for a, b in (("norm1", "norm1"), ("conv1", "conv1"), ("norm2", "norm2"), ("conv2", "conv2"),
                 ("conv_shortcut", "nin_shortcut")):
        both(m, f"{left}.{a}", f"{right}.{b}", *((4,) if "norm" in a else (4, 2, 1, 1)))


def vae(m):
    for coder in ("encoder", "decoder"):
        left, right = f"vae.{coder}.", f"first_stage_model.{coder}."
        for a, b in (("conv_in", "conv_in"), ("conv_out", "conv_out"), ("conv_norm_out",
                                                                       "norm_out")):
            both(m, left + a, right + b, *((4,) if "norm" in a else (4, 2, 3, 3)))
        for j in range(2):
            vae_resnet(m, f"{left}mid_block.resnets.{j}", f"{right}mid.block_{1 + j}")
        at, to = left + "mid_block.attentions.0.", right + "mid.attn_1."
        both(m, at + "group_norm", to + "norm", 4)
        for a, b in (("to_q", "q"), ("to_k", "k"), ("to_v", "v"), ("to_out.0", "proj_out")):
            m.want(f"{to}{b}.weight", m.new(f"{at}{a}.weight", 4, 4)[:, :, None, None])
            m.same(f"{at}{a}.bias", f"{to}{b}.bias", 4)
    for i in range(4):
        for j in range(2):
            vae_resnet(m, f"vae.encoder.down_blocks.{i}.resnets.{j}",
                       f"first_stage_model.encoder.down.{i}.block.{j}")
        for j in range(3):
            vae_resnet(m, f"vae.decoder.up_blocks.{i}.resnets.{j}",
                       f"first_stage_model.decoder.up.{3 - i}.block.{j}")
        if i < 3:
            both(m, f"vae.encoder.down_blocks.{i}.downsamplers.0.conv",
                 f"first_stage_model.encoder.down.{i}.downsample.conv", 4, 2, 3, 3)
            both(m, f"vae.decoder.up_blocks.{i}.upsamplers.0.conv",
                 f"first_stage_model.decoder.up.{3 - i}.upsample.conv", 4, 2, 3, 3)
    both(m, "vae.quant_conv", "first_stage_model.quant_conv", 4, 4, 1, 1)
    both(m, "vae.post_quant_conv", "first_stage_model.post_quant_conv", 4, 4, 1, 1)


def clip(m, left, right):
    m.same(left + "text_model.embeddings.token_embedding.weight",
           right + "text_model.embeddings.token_embedding.weight", 7, 4)
    both(m, left + "text_model.encoder.layers.11.self_attn.q_proj",
         right + "text_model.encoder.layers.11.self_attn.q_proj", 4, 4)


def open_clip(m):
    left, right = "text_encoder_2.", "conditioner.embedders.1.model."
    m.same(left + "text_model.embeddings.token_embedding.weight", right + "token_embedding.weight",
           7, 4)
    m.same(left + "text_model.embeddings.position_embedding.weight", right + "positional_embedding",
           5, 4)
    both(m, left + "text_model.final_layer_norm", right + "ln_final", 4)
    m.want(right + "text_projection", m.new(left + "text_projection.weight", 6, 4).T)
    for i in range(2):
        a, b = f"{left}text_model.encoder.layers.{i}.", f"{right}transformer.resblocks.{i}."
        for x, y in (("layer_norm1", "ln_1"), ("layer_norm2", "ln_2"), ("mlp.fc1", "mlp.c_fc"),
                     ("mlp.fc2", "mlp.c_proj"), ("self_attn.out_proj", "attn.out_proj")):
            both(m, a + x, b + y, *((4,) if "norm" in x else (4, 4)))
        for end, shape in (("weight", (4, 4)), ("bias", (4,))):
            m.want(f"{b}attn.in_proj_{end}", np.concatenate(
                [m.new(f"{a}self_attn.{x}_proj.{end}", *shape) for x in "qkv"]))


def sd15():
    m = Model(30, vectors=None)
    unet(m, 4, lambda i: i < 3, lambda i: i > 0)
    vae(m)
    clip(m, "text_encoder.", "cond_stage_model.transformer.")
    return m


def sdxl():
    m = Model(31, vectors=None)
    unet(m, 3, lambda i: i > 0, lambda i: i < 2)
    for i, x in ((1, 0), (2, 2)):
        both(m, f"unet.add_embedding.linear_{i}", f"model.diffusion_model.label_emb.0.{x}", 4, 2)
    vae(m)
    clip(m, "text_encoder.", "conditioner.embedders.0.transformer.")
    open_clip(m)
    return m


# The names of some modules have underscores of their own.
LORA = ["unet.down_blocks.1.attentions.0.transformer_blocks.2.attn1.to_q",
        "unet.down_blocks.1.attentions.1.transformer_blocks.0.attn2.to_out.0",
        "unet.mid_block.attentions.0.transformer_blocks.9.ff.net.0.proj",
        "unet.up_blocks.2.attentions.1.transformer_blocks.0.ff.net.2",
        "unet.up_blocks.1.attentions.0.proj_in", "unet.mid_block.attentions.0.proj_out",
        "unet.down_blocks.0.resnets.1.conv1", "unet.mid_block.resnets.0.time_emb_proj",
        "unet.up_blocks.3.resnets.0.conv_shortcut", "unet.down_blocks.2.downsamplers.0.conv",
        "unet.up_blocks.0.upsamplers.0.conv"]
TEXT = ["text_model.encoder.layers.11.self_attn.q_proj",
        "text_model.encoder.layers.0.self_attn.out_proj", "text_model.encoder.layers.5.mlp.fc1"]


def kohya(encoders):
    """The names of kohya's scripts are those of modules, with underscores instead of dots."""
    m = Model(32, vectors=None)
    modules = [(f"lora_{name.replace('.', '_')}", name) for name in LORA]
    for short, long in encoders.items():
        modules += [(f"lora_{short}_{name.replace('.', '_')}", f"{long}.{name}") for name in TEXT]
    for left, right in modules:
        m.same(left + ".lora_down.weight", right + ".lora_A.weight", 2, 6)
        m.same(left + ".lora_up.weight", right + ".lora_B.weight", 6, 2)
        m.same(left + ".alpha", right + ".alpha")
    return m


DIFFUSION = {
    "diffusers-sd15": (sd15, {}),
    "diffusers-sdxl": (sdxl, {}),
    "kohya-lora": (lambda: kohya({"te": "text_encoder"}), {}),
    "kohya-lora-sdxl": (lambda: kohya({"te1": "text_encoder", "te2": "text_encoder_2"}), {}),
}
