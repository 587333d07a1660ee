# Metadata and tokenizers of GGUF files; tests/py/check_gguf_runs.py has llama.cpp for a judge.
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import json, pathlib
import made_models, made_tokenizers as t
from check_gguf_runs import weights_file
def folder(name, config={}, tokenizer=None, vocab=None, kind="qwen2"):
    tokenizer = t.byte_level("qwen2", count=4) if tokenizer is None else tokenizer
    rows = vocab or len(tokenizer["model"]["vocab"]) + 2
    model = made_models.Model(kind, rows)
    model.forward([1])
    model.c.update(config)
    path = pathlib.Path(name)
    t.write(path, "config.json", {k: v for k, v in model.c.items() if v != "none"})
    if tokenizer:
        t.write(path, "tokenizer.json", tokenizer)
    t.write(path, "model.safetensors", weights_file(model.weights))
folder("good")
folder("window", {"use_sliding_window": True, "sliding_window": 64})
folder("phi", {"sliding_window": 64}, kind="phi3")
folder("wide", {"sliding_window": 512, "max_position_embeddings": 512}, kind="phi3")
folder("scoring", {"scoring_func": "relu"}, kind="deepseek_v3")
folder("no_nope", {"qk_nope_head_dim": "none"}, kind="deepseek_v3")
folder("no_rope", {"qk_rope_head_dim": "none"}, kind="deepseek_v3")
folder("relu", {"hidden_act": "relu"})
folder("less", {"num_hidden_layers": "none"})
folder("keys", {"num_key_value_heads": "none"})
folder("width", {"intermediate_size": 95})
folder("more", {"num_hidden_layers": 3})
folder("fewer", {"num_hidden_layers": 1})
folder("scale", {"query_pre_attn_scalar": 64}, kind="gemma2")
folder("pattern", {"sliding_window_pattern": 2}, kind="gemma3_text")
local, full = "sliding_attention", "full_attention"
folder("types", {"layer_types": [local] * 4 + [full, local]}, kind="gemma3_text")
folder("usual", {"layer_types": [local] * 5 + [full], "_sliding_window_pattern": 6}, kind="gemma3_text")
folder("raw_topk", {"norm_topk_prob": False}, kind="qwen3_moe")
folder("no_topk", {"norm_topk_prob": "none"}, kind="qwen3_moe")
folder("topk", {"norm_topk_prob": True}, kind="qwen2_moe")
folder("bidirectional", {"use_bidirectional_attention": True}, kind="gemma3_text")
folder("softcap", {"attn_logit_softcapping": 50.0}, kind="gemma3_text")
folder("limit", {"swiglu_limit": 6.5}, kind="gpt_oss")
folder("decoder", {"is_decoder": True}, kind="bert")
folder("cross", {"add_cross_attention": True}, kind="gpt2")
folder("halves", {"rope_interleave": False}, kind="deepseek_v3")
folder("method", {"topk_method": "greedy"}, kind="deepseek_v3")
yarn = made_models.CONFIGS["deepseek_v3"]["rope_scaling"]
folder("mscale", {"rope_scaling": {**yarn, "mscale": 0.5}}, kind="deepseek_v3")
folder("no_mscale", {"rope_scaling": {k: v for k, v in yarn.items() if k != "mscale_all_dim"}}, kind="deepseek_v3")
folder("attention", {"rope_scaling": {**yarn, "attention_factor": 1.5}}, kind="deepseek_v3")
folder("small", {"rope_scaling": {"rope_type": "yarn", "factor": 1e-9, "attention_factor": 1.5,
                                  "original_max_position_embeddings": 128}})
folder("dynamic", {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})
folder("groups", {"topk_method": "group_limited_greedy"}, kind="deepseek_v2")
yarn = made_models.CONFIGS["gpt_oss"]["rope_scaling"]
folder("truncate", {"swiglu_limit": 7.0, "rope_scaling": {**yarn, "truncate": False}}, kind="gpt_oss")
folder("v3", {"norm_topk_prob": "none"}, kind="deepseek_v3")
folder("bare", tokenizer={}, vocab=300)
folder("short", vocab=100)
odd = t.byte_level("qwen2", count=4)
odd["pre_tokenizer"] = {"type": "Whitespace"}
folder("odd", tokenizer=odd)
def unigram(name, **changes):
    made = {**t.unigram(), **changes}
    rows = len(made["model"]["vocab"])
    model = made_models.Model("llama", rows)
    model.forward([1])
    t.write(pathlib.Path(name), "config.json", model.c)
    t.write(pathlib.Path(name), "tokenizer.json", made)
    t.write(pathlib.Path(name), "model.safetensors", weights_file(model.weights))
unigram("lower", normalizer={"type": "Lowercase"})
unigram("joined", normalizer={"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
unigram("table", normalizer={"type": "Precompiled", "precompiled_charsmap": "AAA"})
unigram("cut", normalizer={"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAA="})
unigram("split", pre_tokenizer={"type": "Sequence", "pretokenizers": [
    {"type": "WhitespaceSplit"}, t.unigram()["pre_tokenizer"]]})
words = {**t.unigram()["model"], "byte_fallback": True}
words["vocab"] = words["vocab"] + [["a▁b", -3.0]]
unigram("words", model=words)
P
echo "== a file that runs"; $HEFT convert -q --map auto good out.gguf; $HEFT info out.gguf | grep -c 'tokenizer.ggml\|qwen2\.'
echo "== a window that is not computed"; $HEFT convert --map auto window no.gguf | grep -v bytes; rm no.gguf
for f in window phi; do $HEFT convert --strict --map auto $f no.gguf || echo "= $?"; done
$HEFT convert -q --strict --map auto wide wide.gguf; $HEFT info wide.gguf | grep sliding_window
echo "== an activation that is not computed"; $HEFT convert --map auto relu no.gguf || echo "= $?"
echo "== a setting is missing"
for f in less no_nope no_rope; do $HEFT convert --map auto $f no.gguf || echo "= $?"; done
echo "== settings that contradict the weights"
for f in keys width more fewer; do $HEFT convert --map auto $f no.gguf || echo "= $?"; done
echo "== settings that llama.cpp does not read"
for f in scale pattern types; do $HEFT convert --map auto $f no.gguf || echo "= $?"; done
for f in scoring raw_topk no_topk topk bidirectional softcap limit decoder cross halves method mscale no_mscale attention small dynamic; do
    $HEFT convert --map auto $f no.gguf || echo "$f = $?"
done
for f in groups truncate; do $HEFT convert --strict --map auto $f no.gguf || echo "$f = $?"; done
$HEFT convert -q --map auto v3 v3.gguf && $HEFT info v3.gguf | grep weights_norm
$HEFT convert -q --map auto usual usual.gguf && [ ! -e no.gguf ] && echo "nothing is left"
echo "== a map of another architecture"; $HEFT convert --map llama good no.gguf || echo "= $?"
$HEFT convert --map llama:inverse out.gguf other/ || echo "= $?"; [ ! -e no.gguf -a ! -e other ] && echo "nothing is left"
echo "== no tokenizer"; $HEFT convert -q --map auto bare bare.gguf; $HEFT info bare.gguf | grep -c tokenizer
$HEFT convert --strict --map auto bare no.gguf || echo "= $?"
echo "== no config.json"; cp good/model.safetensors alone.safetensors
$HEFT convert --map qwen2 alone.safetensors alone.gguf || echo "= $?"; $HEFT info alone.gguf | grep -c tokenizer
echo "== more tokens than rows"; $HEFT convert --map auto short no.gguf || echo "= $?"
echo "== steps that are not known"; $HEFT convert --map auto odd no.gguf || echo "= $?"
$HEFT convert -q --map auto --pre-tokenizer qwen2 odd odd.gguf; $HEFT info odd.gguf | grep ggml.pre
$HEFT convert -f --map auto --pre-tokenizer qwne2 odd odd2.gguf; $HEFT convert -f --strict --map auto --pre-tokenizer qwne2 odd odd2.gguf || echo "= $?"
echo "== Unigram"; for f in lower joined table cut; do $HEFT convert --map auto $f no.gguf || echo "= $?"; done
for f in split words; do $HEFT convert --map auto $f $f.gguf; $HEFT info $f.gguf | grep -c 'add_space_prefix = true\|whitespaces'; done
echo "== casts"; $HEFT convert --map auto --cast '*.weight=f16' good cast.gguf
$HEFT ls --raw cast.gguf | cut -f2 | sort | uniq -c
$HEFT convert --map auto --cast 'output_norm.weight=bf16' good no.gguf || echo "= $?"
echo "== and back"; $HEFT convert --map auto out.gguf back/; ls back
$HEFT convert --map auto out.gguf back/ || echo "= $?"
$HEFT convert -qf --map auto out.gguf back; $HEFT diff good/model.safetensors back/model.safetensors
echo "== a tokenizer that does not come back"; $HEFT convert --map auto odd.gguf odd-back/ | grep -v bytes
$HEFT convert -q --map auto bare.gguf bare-back/; ls bare-back
$HEFT convert --strict --map auto bare.gguf strict-back/ || echo "= $?"; test ! -e strict-back
