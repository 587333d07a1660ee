"""map_models.py: small models of each architecture, and what they are in another framework.

The other form is computed with numpy, element by element where rows move, from the definitions of
the frameworks; no map of Heft is read.  A tensor is (element type, array of float32), whose numbers
are multiples of 1/64, so that bf16 and sums with 1 are exact."""
import numpy as np

LAYERS, HEADS, KV, HEAD, WIDTH, HIDDEN, VOCAB, EXPERTS = 2, 4, 2, 6, 24, 20, 30, 3


class Model:
    """Tensors on the left side, and those that are expected on the right side."""

    def __init__(self, seed, dtype="BF16", vectors="F32"):
        self.rng, self.dtype, self.vectors = np.random.default_rng(seed), dtype, vectors
        self.left, self.right = {}, {}
        self.renamed = {} # names of both sides, where the numbers stay

    def new(self, name, *shape):
        numbers = self.rng.integers(-96, 96, shape).astype(np.float32) / 64
        self.left[name] = (self.dtype, numbers)
        return numbers

    def want(self, name, numbers, f32=False):
        dtype = self.vectors or self.dtype if numbers.ndim == 1 else "F32" if f32 else self.dtype
        self.right[name] = (dtype, numbers.copy())

    def same(self, left, right, *shape, f32=False):
        self.want(right, self.new(left, *shape), f32)
        self.renamed[left] = right


def pairs(numbers, heads):
    """Move row h*d + p*d/2 + j to h*d + 2j + p."""
    out, d = np.empty_like(numbers), numbers.shape[0] // heads
    for h in range(heads):
        for p in range(2):
            for j in range(d // 2):
                out[h * d + 2 * j + p] = numbers[h * d + p * (d // 2) + j]
    return out


def attention(m, i, rotary=False, bias=False, norms=False, plus=0, fused=False):
    hf, gg = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
    rows = {"q": HEADS * HEAD, "k": KV * HEAD, "v": KV * HEAD}
    if fused:
        m.same(hf + "qkv_proj.weight", gg + "qkv.weight", sum(rows.values()), WIDTH)
    for x, n in rows.items() if not fused else ():
        for end, shape in [(".weight", (n, WIDTH))] + [(".bias", (n,))] * bias:
            numbers = m.new(f"{hf}{x}_proj{end}", *shape)
            moved = rotary and x != "v"
            m.want(f"{gg}{x}{end}",
                   pairs(numbers, HEADS if x == "q" else KV) if moved else numbers)
    m.same(hf + "o_proj.weight", gg + "output.weight", WIDTH, HEADS * HEAD)
    for x in "qk" if norms else "":
        m.want(f"{gg}{x}_norm.weight", m.new(f"{hf}{x}_norm.weight", HEAD) + plus)


def feed_forward(m, i, hf="mlp.", gg="ffn_{}", fused=False, hidden=HIDDEN):
    hf, gg = f"model.layers.{i}.{hf}", f"blk.{i}.{gg}.weight"
    if fused:
        m.same(hf + "gate_up_proj.weight", gg.format("up"), 2 * hidden, WIDTH)
    for x in () if fused else ("gate", "up"):
        m.same(f"{hf}{x}_proj.weight", gg.format(x), hidden, WIDTH)
    m.same(hf + "down_proj.weight", gg.format("down"), WIDTH, hidden)


def experts(m, i, names=("gate_proj", "up_proj", "down_proj"), module="mlp"):
    hf = f"model.layers.{i}.{module}."
    m.same(hf + "gate.weight", f"blk.{i}.ffn_gate_inp.weight", EXPERTS, WIDTH, f32=True)
    for name, gg in zip(names, ("gate", "up", "down")):
        shape = (WIDTH, HIDDEN) if gg == "down" else (HIDDEN, WIDTH)
        order = [2, 0, 1]  # the order in the file
        each = {e: m.new(f"{hf}experts.{e}.{name}.weight", *shape) for e in order}
        m.want(f"blk.{i}.ffn_{gg}_exps.weight", np.stack([each[e] for e in range(EXPERTS)]))


def ends(m, plus=0, tied=False):
    m.same("model.embed_tokens.weight", "token_embd.weight", VOCAB, WIDTH)
    m.want("output_norm.weight", m.new("model.norm.weight", WIDTH) + plus)
    if not tied:
        m.same("lm_head.weight", "output.weight", VOCAB, WIDTH)


USUAL = (("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"))


def norms(m, i, names=USUAL, plus=0):
    for hf, gg in names:
        m.want(f"blk.{i}.{gg}.weight", m.new(f"model.layers.{i}.{hf}.weight", WIDTH) + plus)


def dense(seed, names=USUAL, plus=0, tied=False, fused=False, **how):
    m = Model(seed)
    ends(m, plus, tied)
    for i in range(LAYERS):
        norms(m, i, names, plus)
        attention(m, i, plus=plus, **how)
        feed_forward(m, i, fused=fused)
    return m


def mixtral():
    m = Model(3)
    ends(m)
    for i in range(LAYERS):
        norms(m, i)
        attention(m, i, rotary=True)
        experts(m, i, ("w1", "w3", "w2"), "block_sparse_moe")
    return m


def qwen_experts(seed, shared, **how):
    m = Model(seed)
    ends(m)
    for i in range(LAYERS):
        norms(m, i)
        attention(m, i, **how)
        experts(m, i)
        if shared:
            feed_forward(m, i, "mlp.shared_expert.", "ffn_{}_shexp", hidden=16)
            m.same(f"model.layers.{i}.mlp.shared_expert_gate.weight",
                   f"blk.{i}.ffn_gate_inp_shexp.weight", 1, WIDTH, f32=True)
    return m


def gpt_oss():
    m = Model(12)
    ends(m)
    for i in range(LAYERS):
        hf, gg = f"model.layers.{i}.", f"blk.{i}."
        norms(m, i, (USUAL[0], ("post_attention_layernorm", "post_attention_norm")))
        attention(m, i, bias=True)
        m.same(hf + "self_attn.o_proj.bias", gg + "attn_output.bias", WIDTH)
        m.same(hf + "self_attn.sinks", gg + "attn_sinks.weight", HEADS)
        m.same(hf + "mlp.router.weight", gg + "ffn_gate_inp.weight", EXPERTS, WIDTH, f32=True)
        m.same(hf + "mlp.router.bias", gg + "ffn_gate_inp.bias", EXPERTS)
        both = m.new(hf + "mlp.experts.gate_up_proj", EXPERTS, WIDTH, 2 * HIDDEN)
        bias = m.new(hf + "mlp.experts.gate_up_proj_bias", EXPERTS, 2 * HIDDEN)
        for x, first in (("gate", 0), ("up", 1)):
            m.want(f"{gg}ffn_{x}_exps.weight", both[:, :, first::2].transpose(0, 2, 1))
            m.want(f"{gg}ffn_{x}_exps.bias", bias[:, first::2], f32=True)
        down = m.new(hf + "mlp.experts.down_proj", EXPERTS, HIDDEN, WIDTH)
        m.want(gg + "ffn_down_exps.weight", down.transpose(0, 2, 1))
        m.same(hf + "mlp.experts.down_proj_bias", gg + "ffn_down_exps.bias", EXPERTS, WIDTH,
               f32=True)
    return m


def gpt2():
    m = Model(13)
    m.same("transformer.wte.weight", "token_embd.weight", VOCAB, WIDTH)
    m.same("transformer.wpe.weight", "position_embd.weight", 16, WIDTH, f32=True)
    for end in ("weight", "bias"):
        m.same(f"transformer.ln_f.{end}", f"output_norm.{end}", WIDTH)
    linear = (("attn.c_attn", "attn_qkv", WIDTH, 3 * WIDTH), ("attn.c_proj", "attn_output", WIDTH,
                                                             WIDTH),
              ("mlp.c_fc", "ffn_up", WIDTH, 4 * WIDTH), ("mlp.c_proj", "ffn_down", 4 * WIDTH,
                                                         WIDTH))
    for i in range(LAYERS):
        hf, gg = f"transformer.h.{i}.", f"blk.{i}."
        for end in ("weight", "bias"):
            m.same(f"{hf}ln_1.{end}", f"{gg}attn_norm.{end}", WIDTH)
            m.same(f"{hf}ln_2.{end}", f"{gg}ffn_norm.{end}", WIDTH)
        for name, to, rows, columns in linear:
            m.want(f"{gg}{to}.weight", m.new(f"{hf}{name}.weight", rows, columns).T)
            m.same(f"{hf}{name}.bias", f"{gg}{to}.bias", columns)
    return m


def bert():
    m = Model(14)
    m.same("embeddings.word_embeddings.weight", "token_embd.weight", VOCAB, WIDTH)
    m.same("embeddings.position_embeddings.weight", "position_embd.weight", 16, WIDTH, f32=True)
    m.same("embeddings.token_type_embeddings.weight", "token_types.weight", 2, WIDTH, f32=True)
    linear = (("attention.self.query", "attn_q", WIDTH, WIDTH), ("attention.self.key", "attn_k",
                                                                WIDTH, WIDTH),
              ("attention.self.value", "attn_v", WIDTH, WIDTH),
              ("attention.output.dense", "attn_output", WIDTH, WIDTH),
              ("intermediate.dense", "ffn_up", HIDDEN, WIDTH), ("output.dense", "ffn_down", WIDTH,
                                                                HIDDEN))
    for end in ("weight", "bias"):
        m.same(f"embeddings.LayerNorm.{end}", f"token_embd_norm.{end}", WIDTH)
    for i in range(LAYERS):
        hf, gg = f"encoder.layer.{i}.", f"blk.{i}."
        for name, to, rows, columns in linear:
            m.same(f"{hf}{name}.weight", f"{gg}{to}.weight", rows, columns)
            m.same(f"{hf}{name}.bias", f"{gg}{to}.bias", rows)
        for end in ("weight", "bias"):
            m.same(f"{hf}attention.output.LayerNorm.{end}", f"{gg}attn_output_norm.{end}", WIDTH)
            m.same(f"{hf}output.LayerNorm.{end}", f"{gg}layer_output_norm.{end}", WIDTH)
    return m


NOPE, ROPE, VALUES, LATENT = 4, 2, 5, 7


def deepseek():
    m = Model(15)
    ends(m)
    for i in range(LAYERS):
        hf, gg = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
        norms(m, i)
        m.same(hf + "q_a_proj.weight", gg + "q_a.weight", LATENT, WIDTH)
        m.same(hf + "q_a_layernorm.weight", gg + "q_a_norm.weight", LATENT)
        m.same(hf + "q_b_proj.weight", gg + "q_b.weight", HEADS * (NOPE + ROPE), LATENT)
        m.same(hf + "kv_a_proj_with_mqa.weight", gg + "kv_a_mqa.weight", LATENT + ROPE, WIDTH)
        m.same(hf + "kv_a_layernorm.weight", gg + "kv_a_norm.weight", LATENT)
        m.same(hf + "o_proj.weight", gg + "output.weight", WIDTH, HEADS * VALUES)
        both = m.new(hf + "kv_b_proj.weight", HEADS * (NOPE + VALUES), LATENT)
        keys, values = np.empty((HEADS, LATENT, NOPE)), np.empty((HEADS, VALUES, LATENT))
        for h in range(HEADS):
            rows = both[h * (NOPE + VALUES):(h + 1) * (NOPE + VALUES)]
            keys[h], values[h] = rows[:NOPE].T, rows[NOPE:]
        m.want(gg + "k_b.weight", keys.astype(np.float32))
        m.want(gg + "v_b.weight", values.astype(np.float32))
        if i == 0:
            feed_forward(m, i)
            continue
        experts(m, i)
        feed_forward(m, i, "mlp.shared_experts.", "ffn_{}_shexp")
        m.same(f"model.layers.{i}.mlp.gate.e_score_correction_bias", f"blk.{i}.exp_probs_b.bias",
               EXPERTS)
    return m


def transformers5(module, names, gate):
    m = Model(20, vectors=None)
    m.same("model.embed_tokens.weight", "model.embed_tokens.weight", VOCAB, WIDTH)
    for i in range(LAYERS):
        hf = f"model.layers.{i}."
        m.same(f"{hf}{gate}", f"{hf}mlp.gate.weight", EXPERTS, WIDTH)
        each = [[m.new(f"{hf}{module}.experts.{e}.{x}.weight", *shape) for x, shape in
                 zip(names, ((HIDDEN, WIDTH), (HIDDEN, WIDTH), (WIDTH, HIDDEN)))]
                for e in range(EXPERTS)]
        m.want(f"{hf}mlp.experts.gate_up_proj", np.stack([np.concatenate(x[:2]) for x in each]))
        m.want(f"{hf}mlp.experts.down_proj", np.stack([x[2] for x in each]))
    return m


def megatron():
    m = Model(21, vectors=None)
    m.same("embedding.word_embeddings.weight", "model.embed_tokens.weight", VOCAB, WIDTH)
    m.same("decoder.final_layernorm.weight", "model.norm.weight", WIDTH)
    m.same("output_layer.weight", "lm_head.weight", VOCAB, WIDTH)
    for i in range(LAYERS):
        mg, hf = f"decoder.layers.{i}.", f"model.layers.{i}."
        m.same(mg + "self_attention.linear_qkv.layer_norm_weight", hf + "input_layernorm.weight",
               WIDTH)
        m.same(mg + "mlp.linear_fc1.layer_norm_weight", hf + "post_attention_layernorm.weight",
               WIDTH)
        m.same(mg + "self_attention.linear_proj.weight", hf + "self_attn.o_proj.weight", WIDTH,
               HEADS * HEAD)
        m.same(mg + "mlp.linear_fc2.weight", hf + "mlp.down_proj.weight", WIDTH, HIDDEN)
        for end, tail in (("weight", (WIDTH,)), ("bias", ())):
            rows = m.new(f"{mg}self_attention.linear_qkv.{end}", (HEADS + 2 * KV) * HEAD, *tail)
            found, at = {"q": [], "k": [], "v": []}, 0
            for _ in range(KV):
                for x, n in (("q", HEADS // KV * HEAD), ("k", HEAD), ("v", HEAD)):
                    found[x].append(rows[at:at + n])
                    at += n
            for x, parts in found.items():
                m.want(f"{hf}self_attn.{x}_proj.{end}", np.concatenate(parts))
        both = m.new(mg + "mlp.linear_fc1.weight", 2 * HIDDEN, WIDTH)
        m.want(hf + "mlp.gate_proj.weight", both[:HIDDEN])
        m.want(hf + "mlp.up_proj.weight", both[HIDDEN:])
    return m


def burn():
    m = Model(22, "F32", vectors=None)
    m.same("model.embed_tokens.weight", "model.embed_tokens.weight", VOCAB, WIDTH)
    m.same("model.norm.weight", "model.norm.gamma", WIDTH)
    m.want("lm_head.weight", m.new("lm_head.weight", VOCAB, WIDTH).T)
    for i in range(LAYERS):
        p = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            m.same(f"{p}{norm}.weight", f"{p}{norm}.gamma", WIDTH)
            m.same(f"{p}{norm}.bias", f"{p}{norm}.beta", WIDTH)
        for name in ("self_attn.q_proj", "mlp.down_proj"):
            m.want(f"{p}{name}.weight", m.new(f"{p}{name}.weight", HIDDEN, WIDTH).T)
            m.same(f"{p}{name}.bias", f"{p}{name}.bias", HIDDEN)
    return m


def gptrs_gpt2(decoder):
    """The output is stored; later versions transpose and split as other decoders do."""
    m = Model(23 + decoder, "F32", vectors=None)
    embedding = m.new("transformer.wte.weight", VOCAB, WIDTH)
    m.want("model.embed_tokens.weight" if decoder else "tok_embeddings.weight", embedding)
    m.want("lm_head.weight" if decoder else "lm_head", embedding if decoder else embedding.T)
    m.same("transformer.wpe.weight",
           "model.embed_positions.weight" if decoder else "pos_embeddings", 16, WIDTH)
    for end, to in (("weight", "gamma"), ("bias", "beta")):
        m.same(f"transformer.ln_f.{end}", f"model.norm.{end}" if decoder else f"final_ln.{to}",
               WIDTH)
    linear = (("attn.c_attn", "attention", "qkv", "", WIDTH, 3 * WIDTH),
              ("attn.c_proj", "attention", "out", "self_attn.o_proj", WIDTH, WIDTH),
              ("mlp.c_fc", "feed_forward", "in", "mlp.up_proj", WIDTH, 4 * WIDTH),
              ("mlp.c_proj", "feed_forward", "out", "mlp.down_proj", 4 * WIDTH, WIDTH))
    for i in range(LAYERS):
        hf, to = f"transformer.h.{i}.", f"model.layers.{i}." if decoder else f"blocks.{i}."
        for norm, new in (("ln_1", "input_layernorm"), ("ln_2", "post_attention_layernorm")):
            for end, old in (("weight", "gamma"), ("bias", "beta")):
                m.same(f"{hf}{norm}.{end}", to + (f"{new}.{end}" if decoder else f"{norm}.{old}"),
                       WIDTH)
        for name, module, part, new, rows, columns in linear:
            w, b = m.new(f"{hf}{name}.weight", rows, columns), m.new(f"{hf}{name}.bias", columns)
            if not decoder:
                m.want(f"{to}{module}.w_{part}", w)
                m.want(f"{to}{module}.b_{part}", b)
                continue
            names = [new] if new else [f"self_attn.{x}_proj" for x in "qkv"]
            for k, one in enumerate(names):
                m.want(f"{to}{one}.weight", np.split(w.T, len(names))[k])
                m.want(f"{to}{one}.bias", np.split(b, len(names))[k])
    return m


def gptrs_llama():
    m = Model(25, "F32", vectors=None)
    m.want("tok_embeddings.weight", m.new("model.embed_tokens.weight", VOCAB, WIDTH))
    m.want("final_norm.gamma", m.new("model.norm.weight", WIDTH))
    m.want("lm_head", m.new("lm_head.weight", VOCAB, WIDTH).T)
    for i in range(LAYERS):
        hf, to = f"model.layers.{i}.", f"blocks.{i}."
        m.want(f"{to}norm_1.gamma", m.new(f"{hf}input_layernorm.weight", WIDTH))
        m.want(f"{to}norm_2.gamma", m.new(f"{hf}post_attention_layernorm.weight", WIDTH))
        parts = [m.new(f"{hf}self_attn.{x}_proj.weight", n * HEAD, WIDTH)
                 for x, n in (("q", HEADS), ("k", KV), ("v", KV))]
        m.want(f"{to}attention.w_qkv", np.concatenate([p.T for p in parts], 1))
        m.want(f"{to}attention.w_out", m.new(f"{hf}self_attn.o_proj.weight", WIDTH, HEADS * HEAD).T)
        for x in ("gate", "up"):
            m.want(f"{to}feed_forward.w_{x}", m.new(f"{hf}mlp.{x}_proj.weight", HIDDEN, WIDTH).T)
        m.want(f"{to}feed_forward.w_down", m.new(f"{hf}mlp.down_proj.weight", WIDTH, HIDDEN).T)
    return m


def gptrs_decoder():
    m = Model(26, "F32", vectors=None)
    m.want("lm_head.weight", m.new("model.embed_tokens.weight", VOCAB, WIDTH))
    m.same("model.norm.weight", "model.norm.weight", WIDTH)
    m.same("model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight", HIDDEN, WIDTH)
    m.want("model.embed_tokens.weight", m.left["model.embed_tokens.weight"][1])
    return m


CONFIG = {"num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": HEAD,
          "hidden_size": WIDTH, "num_hidden_layers": LAYERS}
GEMMA2 = (USUAL[0], ("post_attention_layernorm", "post_attention_norm"),
          ("pre_feedforward_layernorm", "ffn_norm"), ("post_feedforward_layernorm",
                                                      "post_ffw_norm"))
GLM4 = (*USUAL, ("post_self_attn_layernorm", "post_attention_norm"),
        ("post_mlp_layernorm", "post_ffw_norm"))
# Name of the map: function, settings beside CONFIG.
MODELS = {
    "llama": (lambda: dense(1, rotary=True), {"model_type": "llama"}),
    "mistral": (lambda: dense(2, rotary=True), {"model_type": "mistral"}),
    "mixtral": (mixtral, {"model_type": "mixtral", "num_local_experts": EXPERTS}),
    "qwen2": (lambda: dense(4, bias=True, tied=True), {"model_type": "qwen2"}),
    "qwen2moe": (lambda: qwen_experts(5, True, bias=True),
                 {"model_type": "qwen2_moe", "num_experts": EXPERTS}),
    "qwen3": (lambda: dense(6, norms=True), {"model_type": "qwen3"}),
    "qwen3moe": (lambda: qwen_experts(7, False, norms=True),
                 {"model_type": "qwen3_moe", "num_experts": EXPERTS}),
    "gemma": (lambda: dense(8, plus=1, tied=True), {"model_type": "gemma"}),
    "gemma2": (lambda: dense(9, GEMMA2, plus=1, tied=True), {"model_type": "gemma2"}),
    "gemma3": (lambda: dense(10, GEMMA2, plus=1, tied=True, norms=True),
               {"model_type": "gemma3_text"}),
    "phi3": (lambda: dense(11, fused=True, **{}), {"model_type": "phi3"}),
    "gpt-oss": (gpt_oss, {"model_type": "gpt_oss", "num_local_experts": EXPERTS}),
    "gpt2": (gpt2, {"model_type": "gpt2"}),
    "bert": (bert, {"model_type": "bert"}),
    "deepseek2": (deepseek, {"model_type": "deepseek_v3", "n_routed_experts": EXPERTS,
                             "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE,
                             "v_head_dim": VALUES}),
    "olmo2": (lambda: dense(16, (GEMMA2[1], GEMMA2[3]), norms=True), {"model_type": "olmo2"}),
    "glm4": (lambda: dense(17, GLM4, fused=True, bias=True), {"model_type": "glm4"}),
    "transformers5": (lambda: transformers5("mlp", ("gate_proj", "up_proj", "down_proj"),
                                            "mlp.gate.weight"), {}),
    "transformers5-mixtral": (lambda: transformers5("block_sparse_moe", ("w1", "w3", "w2"),
                                                    "block_sparse_moe.gate.weight"), {}),
    "megatron-llama": (megatron, {}),
    "burn": (burn, {}),
    "gptrs-gpt2": (lambda: gptrs_gpt2(False), {}),
    "gptrs-gpt2-decoder": (lambda: gptrs_gpt2(True), {}),
    "gptrs-llama": (gptrs_llama, {}),
    "gptrs-decoder": (gptrs_decoder, {"tie_word_embeddings": True}),
}
