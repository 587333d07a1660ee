"""made_models.py - small models of each architecture, with random weights and a forward pass.

The forward passes follow the definitions of transformers, in numpy over the weights under their
names there."""
import numpy as np

BASE = {"num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 96,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False}
GEMMA = {"head_dim": 32, "hidden_act": "gelu_pytorch_tanh",
         "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
       "decoder_sparse_step": 1, "mlp_only_layers": []}
MLA = {"q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
       "v_head_dim": 16, "num_key_value_heads": 4, "first_k_dense_replace": 1,
       "moe_intermediate_size": 48, "n_routed_experts": 4, "n_shared_experts": 1,
       "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_layer_freq": 1}
LONG = [1.0 + i / 4 for i in range(8)]
CONFIGS = {
    "llama": {"rope_theta": 500000.0, "head_dim": 16,
              "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                               "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}},
    "mistral": {"sliding_window": None},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
    "qwen2": {"use_sliding_window": False,
              "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.25,
                               "original_max_position_embeddings": 128}},
    "qwen2_moe": {**MOE, "shared_expert_intermediate_size": 80, "norm_topk_prob": False},
    "qwen3": {"head_dim": 32, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "qwen3_moe": {**MOE, "head_dim": 32, "norm_topk_prob": True},
    "gemma": GEMMA,
    "gemma2": {**GEMMA, "sliding_window": 4, "attn_logit_softcapping": 50.0,
               "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 32},
    "gemma3_text": {**GEMMA, "num_hidden_layers": 6, "sliding_window": 4,
                    "query_pre_attn_scalar": 32, "rope_theta": 1000000.0,
                    "rope_local_base_freq": 10000.0,
                    "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "phi3": {"original_max_position_embeddings": 256, "sliding_window": None,
             "rope_scaling": {"type": "longrope", "long_factor": LONG[::-1], "short_factor": LONG}},
    "gpt_oss": {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2,
                "sliding_window": 4, "intermediate_size": 64,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0,
                                 "beta_slow": 1.0, "original_max_position_embeddings": 128}},
    "gpt2": {"n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 512, "n_inner": None,
             "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"},
    "bert": {"layer_norm_eps": 1e-12, "hidden_act": "gelu", "type_vocab_size": 2},
    "deepseek_v2": {**MLA, "n_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 1.0,
                    "topk_method": "greedy", "scoring_func": "softmax"},
    "deepseek_v3": {**MLA, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
                    "topk_method": "noaux_tc", "scoring_func": "sigmoid",
                    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale_all_dim": 1.0,
                                     "beta_fast": 32.0, "beta_slow": 1.0,
                                     "original_max_position_embeddings": 128}},
    "olmo2": {},
    "glm4": {"head_dim": 16, "partial_rotary_factor": 0.5, "attention_bias": True},
}


def config_of(kind, vocab):
    base = {} if kind == "gpt2" else BASE
    return {"model_type": kind, "vocab_size": vocab, **base, **CONFIGS[kind]}


# ---- weights ----


class Weights(dict):
    """Weights by name; those that the model reads first are made."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def get_or_make(self, name, shape):
        if name not in self:
            scale = 0.3 if len(shape) == 1 else 1.4 / np.sqrt(shape[-1])
            start = 1.0 if "norm" in name.lower() or "ln_" in name else 0.0
            is_bias = name.endswith("bias")
            self[name] = (self.random.standard_normal(shape) * scale
                          + (0 if is_bias else start)).astype(np.float32)
        return self[name].astype(np.float64)


# ---- parts ----


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, w, eps):
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps) * w + b


def yarn(base, dim, s):
    """Return the frequencies of YaRN, and the factor of the rotated numbers."""
    def place(rotations):
        return dim * np.log(s["original_max_position_embeddings"] / (rotations * 2 * np.pi)) / (
            2 * np.log(base))

    plain = base ** (-np.arange(0, dim, 2) / dim)
    low = max(np.floor(place(s.get("beta_fast", 32))), 0)
    high = min(np.ceil(place(s.get("beta_slow", 1))), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
    usual = 0.1 * np.log(s["factor"]) + 1
    return plain / s["factor"] * ramp + plain * (1 - ramp), s.get("attention_factor", usual)


def frequencies(c, dim, base=None, scaled=True):
    s = c.get("rope_scaling") or {}
    base = base or c["rope_theta"]
    plain = base ** (-np.arange(0, dim, 2) / dim)
    kind = (s.get("rope_type") or s.get("type")) if scaled else None
    if kind == "linear":
        return plain / s["factor"], 1
    if kind == "yarn":
        return yarn(base, dim, s)
    if kind == "longrope":
        longer = c["max_position_embeddings"] / c["original_max_position_embeddings"]
        factor = np.sqrt(1 + np.log(longer) / np.log(c["original_max_position_embeddings"]))
        return plain / np.array(s["short_factor"]), factor
    if kind == "llama3":
        wave = 2 * np.pi / plain
        old = s["original_max_position_embeddings"]
        low, high = s["low_freq_factor"], s["high_freq_factor"]
        smooth = np.clip((old / wave - low) / (high - low), 0, 1)
        return (1 - smooth) * plain / s["factor"] + smooth * plain, 1
    return plain, 1


def rotate(x, freq, factor=1, pairs=False):
    """Rotate [T, heads, dim]: the first numbers of each head, in halves or in pairs."""
    n = 2 * len(freq)
    angle = np.arange(len(x))[:, None] * freq
    cos, sin = (np.cos(angle) * factor)[:, None], (np.sin(angle) * factor)[:, None]
    out = x.copy()
    if pairs:
        a, b = x[..., 0:n:2], x[..., 1:n:2]
        out[..., 0:n:2], out[..., 1:n:2] = a * cos - b * sin, b * cos + a * sin
    else:
        a, b = x[..., :n // 2], x[..., n // 2:n]
        out[..., :n // 2], out[..., n // 2:n] = a * cos - b * sin, b * cos + a * sin
    return out


def attend(q, k, v, scale, window=0, cap=0, causal=True, sinks=None):
    length, heads = len(q), q.shape[1]
    k, v = (np.repeat(t, heads // t.shape[1], 1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) * scale
    if cap:
        scores = np.tanh(scores / cap) * cap
    at = np.arange(length)
    hidden = at[None] > at[:, None] if causal else np.zeros((length, length), bool)
    if window:
        hidden = hidden | (at[None] <= at[:, None] - window)
    scores = np.where(hidden[None], -np.inf, scores)
    if sinks is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None],
                                                         (heads, length, 1))], -1)
    weights = softmax(scores)[..., :length]
    return np.einsum("hqk,khd->qhd", weights, v).reshape(length, -1)


class Model:
    """A forward pass. Weights come into being when they are first read."""

    def __init__(self, kind, vocab, seed=1):
        self.kind, self.c = kind, config_of(kind, vocab)
        self.weights = Weights(seed)
        self.head = self.c.get("head_dim") or (self.c.get("hidden_size", 64)
                                               // self.c.get("num_attention_heads", 4))

    def w(self, name, *shape):
        return self.weights.get_or_make(name, shape)

    def linear(self, x, name, outputs, bias=False):
        y = x @ self.w(name + ".weight", outputs, x.shape[-1]).T
        return y + self.w(name + ".bias", outputs) if bias else y

    def norm(self, x, name, plus=0):
        w = self.w(name + ".weight", x.shape[-1])
        return rms(x, w + plus, self.c["rms_norm_eps"])

    # ---- attention ----

    def attention(self, x, at, i):
        c, kind = self.c, self.kind
        heads, kv, dim = c["num_attention_heads"], c["num_key_value_heads"], self.head
        bias = kind in ("qwen2", "qwen2_moe", "gpt_oss", "glm4")
        if kind == "phi3":
            all_ = self.linear(x, at + "qkv_proj", (heads + 2 * kv) * dim)
            q, k, v = np.split(all_, [heads * dim, (heads + kv) * dim], -1)
        else:
            q = self.linear(x, at + "q_proj", heads * dim, bias)
            k = self.linear(x, at + "k_proj", kv * dim, bias)
            v = self.linear(x, at + "v_proj", kv * dim, bias)
        if kind == "olmo2":
            q, k = self.norm(q, at + "q_norm"), self.norm(k, at + "k_norm")
        q, k, v = (t.reshape(len(x), -1, dim) for t in (q, k, v))
        if kind in ("qwen3", "qwen3_moe", "gemma3_text"):
            plus = kind == "gemma3_text"
            q, k = self.norm(q, at + "q_norm", plus), self.norm(k, at + "k_norm", plus)
        is_local = kind in ("gemma2", "gpt_oss") and i % 2 == 0
        is_local = is_local or (kind == "gemma3_text" and (i + 1) % 6)
        base = c["rope_local_base_freq"] if kind == "gemma3_text" and is_local else None
        rotary = int(dim * c.get("partial_rotary_factor", 1))
        freq, factor = frequencies(c, rotary, base, scaled=base is None)
        q, k = (rotate(t, freq, factor, pairs=kind == "glm4") for t in (q, k))
        sinks = self.w(at + "sinks", heads) if kind == "gpt_oss" else None
        scale = c.get("query_pre_attn_scalar", dim) ** -0.5
        out = attend(q, k, v, scale, c["sliding_window"] if is_local else 0,
                     c.get("attn_logit_softcapping", 0), sinks=sinks)
        return self.linear(out, at + "o_proj", c["hidden_size"], kind == "gpt_oss")

    def latent_attention(self, x, at):
        c = self.c
        heads, nope, rope = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]
        q = self.norm(self.linear(x, at + "q_a_proj", c["q_lora_rank"]), at + "q_a_layernorm")
        q = self.linear(q, at + "q_b_proj", heads * (nope + rope)).reshape(len(x), heads, -1)
        both = self.linear(x, at + "kv_a_proj_with_mqa", c["kv_lora_rank"] + rope)
        latent = self.norm(both[:, :c["kv_lora_rank"]], at + "kv_a_layernorm")
        k_rope = both[:, None, c["kv_lora_rank"]:]
        kv = self.linear(latent, at + "kv_b_proj", heads * (nope + c["v_head_dim"]))
        kv = kv.reshape(len(x), heads, -1)
        freq, _ = frequencies(c, rope)
        q = np.concatenate([q[..., :nope], rotate(q[..., nope:], freq, pairs=True)], -1)
        k_rope = np.repeat(rotate(k_rope, freq, pairs=True), heads, 1)
        k = np.concatenate([kv[..., :nope], k_rope], -1)
        scale, stretch = (nope + rope) ** -0.5, c.get("rope_scaling")
        if stretch:
            scale *= (0.1 * stretch["mscale_all_dim"] * np.log(stretch["factor"]) + 1) ** 2
        out = attend(q, k, kv[..., nope:], scale)
        return self.linear(out, at + "o_proj", c["hidden_size"])

    # ---- feed forward ----

    def mlp(self, x, at, width, names=("gate_proj", "up_proj", "down_proj")):
        act = gelu if self.kind.startswith("gemma") else silu
        gate, up = self.linear(x, at + names[0], width), self.linear(x, at + names[1], width)
        return self.linear(act(gate) * up, at + names[2], x.shape[-1])

    def fused_mlp(self, x, at):
        both = self.linear(x, at + "gate_up_proj", 2 * self.c["intermediate_size"])
        gate, up = np.split(both, 2, -1)
        return self.linear(silu(gate) * up, at + "down_proj", x.shape[-1])

    def experts(self, x, scores, run, norm, scale=1, choice=None):
        """Add the experts with the best scores; `choice` has other scores to choose by."""
        out = np.zeros_like(x)
        used = self.c["num_experts_per_tok"]
        for t, row in enumerate(scores):
            best = np.argsort(-(row if choice is None else choice[t]), kind="stable")[:used]
            weights = row[best] / (row[best].sum() if norm else 1) * scale
            for e, weight in zip(best, weights):
                out[t] += weight * run(x[t:t + 1], e)[0]
        for e in range(scores.shape[1]):  # weights that no token has chosen
            run(x[:1], e)
        return out

    def oss_expert(self, x, at, e):
        c = self.c
        n, width, ff = c["num_local_experts"], c["hidden_size"], c["intermediate_size"]
        both = x @ self.w(at + "gate_up_proj", n, width, 2 * ff)[e]
        both = both + self.w(at + "gate_up_proj_bias", n, 2 * ff)[e]
        gate, up = np.minimum(both[:, ::2], 7), np.clip(both[:, 1::2], -7, 7)
        y = (up + 1) * gate / (1 + np.exp(-1.702 * gate))
        return y @ self.w(at + "down_proj", n, ff, width)[e] + self.w(at + "down_proj_bias", n,
                                                                      width)[e]

    def feed_forward(self, x, at, i):
        c, kind = self.c, self.kind
        if kind == "mixtral":
            at = at.replace("mlp.", "block_sparse_moe.")
            scores = softmax(self.linear(x, at + "gate", c["num_local_experts"]))
            return self.experts(x, scores, lambda y, e: self.mlp(
                y, f"{at}experts.{e}.", c["intermediate_size"], ("w1", "w3", "w2")), True)
        if kind == "gpt_oss":
            logits = self.linear(x, at + "router", c["num_local_experts"], True)
            return self.experts(x, np.exp(logits), lambda y, e: self.oss_expert(
                y, at + "experts.", e), True)
        if kind in ("qwen2_moe", "qwen3_moe"):
            scores = softmax(self.linear(x, at + "gate", c["num_experts"]))
            out = self.experts(x, scores, lambda y, e: self.mlp(
                y, f"{at}experts.{e}.", c["moe_intermediate_size"]), c["norm_topk_prob"])
            if kind == "qwen2_moe":
                gate = 1 / (1 + np.exp(-self.linear(x, at + "shared_expert_gate", 1)))
                out = out + gate * self.mlp(x, at + "shared_expert.",
                                            c["shared_expert_intermediate_size"])
            return out
        if kind.startswith("deepseek") and i >= c["first_k_dense_replace"]:
            return self.deepseek_experts(x, at)
        if kind in ("phi3", "glm4"):
            return self.fused_mlp(x, at)
        return self.mlp(x, at, c["intermediate_size"])

    def deepseek_experts(self, x, at):
        c = self.c
        logits, choice = self.linear(x, at + "gate", c["n_routed_experts"]), None
        scores = softmax(logits)
        if c["scoring_func"] == "sigmoid":
            scores = 1 / (1 + np.exp(-logits))
            choice = scores + self.w(at + "gate.e_score_correction_bias", c["n_routed_experts"])
        out = self.experts(x, scores, lambda y, e: self.mlp(
            y, f"{at}experts.{e}.", c["moe_intermediate_size"]), c["norm_topk_prob"],
            c["routed_scaling_factor"], choice)
        return out + self.mlp(x, at + "shared_experts.",
                              c["moe_intermediate_size"] * c["n_shared_experts"])

    # ---- models ----

    def layer(self, x, i):
        kind, at = self.kind, f"model.layers.{i}."
        plus = kind.startswith("gemma")
        norm = lambda y, name: self.norm(y, at + name, plus)  # noqa: E731
        attention = lambda y: (self.latent_attention(y, at + "self_attn.")  # noqa: E731
                               if kind.startswith("deepseek")
                               else self.attention(y, at + "self_attn.", i))
        ff = lambda y: self.feed_forward(y, at + "mlp.", i)  # noqa: E731
        if kind == "olmo2":
            x = x + norm(attention(x), "post_attention_layernorm")
            return x + norm(ff(x), "post_feedforward_layernorm")
        y = attention(norm(x, "input_layernorm"))
        if kind in ("gemma2", "gemma3_text"):
            x = x + norm(y, "post_attention_layernorm")
            return x + norm(ff(norm(x, "pre_feedforward_layernorm")), "post_feedforward_layernorm")
        if kind == "glm4":
            x = x + norm(y, "post_self_attn_layernorm")
            return x + norm(ff(norm(x, "post_attention_layernorm")), "post_mlp_layernorm")
        x = x + y
        return x + ff(norm(x, "post_attention_layernorm"))

    def forward(self, ids):
        """Return the logits of each token; of bert, the numbers of the last layer."""
        if self.kind == "gpt2":
            return self.gpt2(ids)
        if self.kind == "bert":
            return self.bert(ids)
        c = self.c
        embedding = self.w("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"])
        x = embedding[ids]
        if self.kind.startswith("gemma"):
            x = x * np.float32(np.sqrt(c["hidden_size"]))
        for i in range(c["num_hidden_layers"]):
            x = self.layer(x, i)
        x = self.norm(x, "model.norm", self.kind.startswith("gemma"))
        if c["tie_word_embeddings"]:
            logits = x @ embedding.T
        else:
            logits = x @ self.w("lm_head.weight", *embedding.shape).T
        cap = c.get("final_logit_softcapping")
        return np.tanh(logits / cap) * cap if cap else logits

    def gpt2(self, ids):
        c, width, eps = self.c, self.c["n_embd"], self.c["layer_norm_epsilon"]

        def conv(x, name, outputs):
            return x @ self.w(name + ".weight", x.shape[-1], outputs) + self.w(name + ".bias",
                                                                             outputs)

        def norm(x, name):
            return layer_norm(x, self.w(name + ".weight", width), self.w(name + ".bias", width),
                              eps)

        embedding = self.w("transformer.wte.weight", c["vocab_size"], width)
        x = embedding[ids] + self.w("transformer.wpe.weight", c["n_positions"], width)[:len(ids)]
        for i in range(c["n_layer"]):
            at = f"transformer.h.{i}."
            q, k, v = (t.reshape(len(x), c["n_head"], -1) for t in np.split(
                conv(norm(x, at + "ln_1"), at + "attn.c_attn", 3 * width), 3, -1))
            x = x + conv(attend(q, k, v, q.shape[-1] ** -0.5), at + "attn.c_proj", width)
            y = gelu(conv(norm(x, at + "ln_2"), at + "mlp.c_fc", 4 * width))
            x = x + conv(y, at + "mlp.c_proj", width)
        return norm(x, "transformer.ln_f") @ embedding.T

    def bert(self, ids):
        c, width, eps = self.c, self.c["hidden_size"], self.c["layer_norm_eps"]
        heads = c["num_attention_heads"]

        def norm(x, name):
            return layer_norm(x, self.w(name + ".weight", width), self.w(name + ".bias", width),
                              eps)

        at = "embeddings."
        x = self.w(at + "word_embeddings.weight", c["vocab_size"], width)[ids]
        x = x + self.w(at + "token_type_embeddings.weight", c["type_vocab_size"], width)[0]
        x = x + self.w(at + "position_embeddings.weight", c["max_position_embeddings"],
                       width)[:len(ids)]
        x = norm(x, at + "LayerNorm")
        for i in range(c["num_hidden_layers"]):
            at = f"encoder.layer.{i}."
            q, k, v = (self.linear(x, f"{at}attention.self.{n}", width, True).reshape(
                len(x), heads, -1) for n in ("query", "key", "value"))
            y = attend(q, k, v, q.shape[-1] ** -0.5, causal=False)
            x = norm(x + self.linear(y, at + "attention.output.dense", width, True),
                     at + "attention.output.LayerNorm")
            y = gelu(self.linear(x, at + "intermediate.dense", c["intermediate_size"], True))
            x = norm(x + self.linear(y, at + "output.dense", width, True), at + "output.LayerNorm")
        return x
