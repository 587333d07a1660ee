"""lora_refusals.py - adapters that do not fit, and what `heft convert --lora` says of each.

A row is a title, a function that makes the adapter from the module check_lora, further options, the
exit status, and words of the message."""

INVALID, UNSUPPORTED, LOSSY, MISSING = 3, 5, 5, 2
PEFT = "base_model.model."


def changed(**tensors):
    """An adapter for q_proj in which some tensors are others: NAME=SHAPE, None to leave it out."""

    def make(m):
        a = m.Adapter(m.config())
        a.linear(m.Q, m.Q + ".weight", 48, 24)
        for name, shape in tensors.items():
            key = f"{PEFT}{m.Q}.{name}.weight"
            a.tensors.pop(key, None)
            if shape:
                a.add(key, m.drawn(name, shape))
        return a

    return make


def with_config(change):

    def make(m):
        a = m.Adapter(m.config())
        a.linear(m.Q, m.Q + ".weight", 48, 24)
        change(a.config)
        return a

    return make


def named(name, shape=(4, 24)):

    def make(m):
        a = m.Adapter(m.config())
        a.linear(m.Q, m.Q + ".weight", 48, 24)
        a.add(name, m.drawn(name, shape))
        return a

    return make


def without_config(m):
    a = changed()(m)
    a.config = None
    return a


def poisoned(m):
    a = changed()(m)
    key = f"{PEFT}{m.Q}.lora_B.weight"
    values = m.value(a.tensors[key]).copy()
    values[7, 0] = float("nan")
    a.add(key, values)
    return a


def overflowing(m):
    a = m.Adapter(m.config())
    a.linear(m.UP, m.UP + ".weight", 70, 24)
    key = f"{PEFT}{m.UP}.lora_B.weight"
    a.add(key, m.value(a.tensors[key]) * 1e6)
    return a


def square_experts(m):
    a = m.Adapter(m.config(target_parameters=["mlp.experts.gate_up_proj"], r=2))
    a.add(f"{PEFT}{m.EXPERTS}.lora_A.weight", m.drawn("sa", (6, 7)))
    a.add(f"{PEFT}{m.EXPERTS}.lora_B.weight", m.drawn("sb", (10, 6)))
    return a


def turned_magnitude(m):
    a = m.turned()
    a.config["use_dora"] = True
    a.add(f"{PEFT}model.layers.0.c_attn.lora_magnitude_vector", m.drawn("tm", (33, )))
    a.add(f"{PEFT}{m.Q}.lora_magnitude_vector", m.drawn("tq", (48, )))
    return a


def replacing(*tensors):
    """An adapter with tensors that replace those of the model."""

    def make(m):
        a = m.Adapter(m.config())
        a.linear(m.Q, m.Q + ".weight", 48, 24)
        for name, shape in tensors:
            a.add(PEFT + name, m.drawn(name, shape))
        return a

    return make


def twice(m):
    a = m.Adapter(m.config())
    a.linear(m.Q, m.Q + ".weight", 48, 24)
    a.linear(m.Q.removeprefix("model."), m.Q + ".weight", 48, 24)
    return a


def empty(m):
    return m.Adapter(m.config())


REFUSALS = [
    ("another number of columns", changed(lora_A=(4, 25)), [], INVALID,
     "changes a weight of 48 x 25, but tensor 'model.layers.0.self_attn.q_proj.weight' is 48 x 24"),
    ("another number of rows", changed(lora_B=(47, 4)), [], INVALID, "a weight of 47 x 24"),
    ("ranks that differ", changed(lora_B=(48, 5)), [], INVALID, "the ranks of"),
    ("a rank that the settings contradict", changed(lora_A=(6, 24), lora_B=(48, 6)), [], INVALID,
     "has the rank 6, but adapter_config.json says 4"),
    ("B is missing", changed(lora_B=None), [], INVALID, "lacks the second (B, up)"),
    ("A is missing", changed(lora_A=None), [], INVALID, "lacks the first (A, down)"),
    ("a vector", changed(lora_A=(96, )), [], INVALID, "not a matrix"),
    ("no settings", without_config, [], MISSING, "no adapter_config.json"),
    ("no alpha", with_config(lambda c: c.pop("lora_alpha")), [], INVALID, "no lora_alpha"),
    ("alpha is a text", with_config(lambda c: c.update(lora_alpha="much")), [], INVALID,
     "'lora_alpha' is not a number"),
    ("another method", with_config(lambda c: c.update(peft_type="IA3")), [], UNSUPPORTED, "'IA3'"),
    ("use_dora is a number", with_config(lambda c: c.update(use_dora=3)), [], INVALID,
     "neither true nor false"),
    ("magnitudes are missing", with_config(lambda c: c.update(use_dora=True)), [], INVALID,
     "has no magnitudes"),
    ("magnitudes of columns", turned_magnitude, [], UNSUPPORTED, "only one for each row"),
    ("LoKr", named("lora_unet_x.lokr_w1"), [], UNSUPPORTED, "belongs to LoKr"),
    ("a learned factor", named("lora_unet_x.scalar", ()), ["--allow-unmatched"], UNSUPPORTED,
     "belongs to LyCORIS with a factor"),
    ("another shape", named("diffusion_model.x.reshape_weight"), ["--allow-unmatched"], UNSUPPORTED,
     "belongs to a weight that gets another shape"),
    ("a tensor that matches nothing", named(PEFT + "model.layers.9.norm.weight"), [], MISSING,
     "'base_model.model.model.layers.9.norm.weight' of the adapter, and 0 others, match nothing"),
    ("a tensor that matches nothing is left out", named(PEFT + "model.layers.9.norm.weight"),
     ["--allow-unmatched"], 0, "1 tensor of adapters match nothing and are left out"),
    ("with --strict it is not", named(PEFT + "model.layers.9.norm.weight"),
     ["--allow-unmatched", "--strict"], UNSUPPORTED, "match nothing"),
    ("alpha without matrices", named("lora_unet_x.alpha", ()), [], INVALID, "has no matrices"),
    ("a NaN", poisoned, [], LOSSY, "would have a NaN (element 168)"),
    ("a NaN is allowed", poisoned, ["--allow-nan"], 0, ""),
    ("a number that f16 does not have", overflowing, [], LOSSY, "too large for its type"),
    ("no tensors", empty, [], MISSING, "the adapter has no tensors"),
    ("no tensors, whatever is allowed", empty, ["--allow-unmatched"], MISSING, "has no tensors"),
    ("two modules of a weight", twice, [], INVALID, "two modules of the adapter change tensor"),
    ("a pattern that is none", with_config(lambda c: c.update(alpha_pattern={"(q": 8})), [],
     UNSUPPORTED, "the pattern '(q' of 'alpha_pattern', or its value, is not understood"),
    ("an alpha that is none", with_config(lambda c: c.update(alpha_pattern={"q": "x"})), [],
     UNSUPPORTED, "the pattern 'q' of 'alpha_pattern'"),
    ("an alpha of no module", with_config(lambda c: c.update(alpha_pattern={"k_proj": 3})), [], 0,
     "'k_proj' in alpha_pattern of adapter_config.json names no module of the adapter"),
    ("a rank of no module", with_config(lambda c: c.update(rank_pattern={"qproj": 3})),
     ["--strict"], MISSING, "'qproj' in rank_pattern of adapter_config.json names no module"),
    ("patterns in a list", with_config(lambda c: c.update(rank_pattern=[1])), [], INVALID,
     "'rank_pattern' is not a map"),
    ("layers are repeated", with_config(lambda c: c.update(layer_replication=[[0, 1]])), [],
     UNSUPPORTED, "'layer_replication': the adapter repeats layers"),
    ("aLoRA", with_config(lambda c: c.update(alora_invocation_tokens=[1])), [], UNSUPPORTED,
     "(aLoRA), which is not merged"),
    ("QALoRA", with_config(lambda c: c.update(use_qalora=True)), [], UNSUPPORTED, "(QALoRA)"),
    ("settings that are off", with_config(lambda c: c.update(
        use_qalora=False, alora_invocation_tokens=None, layer_replication=None, rank_pattern=None,
        init_lora_weights="gaussian")), [], 0, ""),
    ("PiSSA", with_config(lambda c: c.update(init_lora_weights="pissa_niter_16")), [], UNSUPPORTED,
     "belongs to a base that was changed before the training"),
    ("a norm of another model", replacing(("model.layers.0.norm.weight", (25, ))), [], INVALID,
     "which it replaces, is"),
    ("experts of another model", square_experts, [], INVALID, "fit none of its parameters"),
]
