# Large tensors are copied by the system, also where a map stacks them; when it cannot, the output is the same.
$PYTHON - <<'P'
import json, os, pathlib, random, sys
import traced
from samples import write_safetensors
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

bytes_of = random.Random(5).randbytes
tensors = {"model.embed_tokens.weight": ("BF16", [8, 300], bytes_of(4800))}
for expert in range(4):
    for part, shape in ("gate", [200, 300]), ("up", [200, 300]), ("down", [300, 200]):
        tensors[f"model.layers.0.mlp.experts.{expert}.{part}_proj.weight"] = ("BF16", shape, bytes_of(120000))
os.mkdir("in")
write_safetensors("in/model.safetensors", tensors)
pathlib.Path("in/config.json").write_text(json.dumps(
    {"model_type": "qwen3_moe", "num_attention_heads": 4, "num_experts": 4}))

PLAIN = ("in/model.safetensors",)
STACKED = ("--map", "qwen3moe", "in")
for title, words in ("plain", PLAIN), ("stacked", STACKED):
    outputs = set()
    for error in (None, "EXDEV", "EIO", "ENOSPC"):
        rules = [f"inject=copy_file_range:error={error}"] if error else []
        code, err = traced.run(rules, "convert", "-q", *words, "out.safetensors")
        print(title, error, code, err)
        outputs.add(pathlib.Path("out.safetensors").read_bytes())
        os.remove("out.safetensors")
    code, _ = traced.run(["inject=copy_file_range:signal=KILL"], "convert", "-q", *words, "out.safetensors")
    print(title, len(outputs), code)
stacked = b"".join(tensors[f"model.layers.0.mlp.experts.{e}.up_proj.weight"][2] for e in range(4))
print(stacked in next(iter(outputs)))
P
