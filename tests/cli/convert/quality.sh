# What --verify-quality says; tests/py/check_quality.py judges the numbers.
$PYTHON - <<'P'
import struct
from samples import write_safetensors
def weight(rows, columns, by):
    x = [((i * 37 + r * 11) % 101 - 50) * by for r in range(rows) for i in range(columns)]
    return "F32", [rows, columns], struct.pack(f"<{len(x)}f", *x)
many = {f"blk.{i}.ffn_up.weight": weight(4, 64, 0.5 + i) for i in range(12)}
write_safetensors("in.safetensors", {**many, "blk.0.attn_norm.weight": ("F32", [64], bytes(256))})
write_safetensors("zeros.safetensors", {"blk.0.ffn_up.weight": ("F32", [2, 32], bytes(256))})
write_safetensors("none.safetensors", {"blk.0.attn_norm.weight": ("F32", [64], bytes(256))})
P
say() { echo "== $1"; }
llama="--set general.architecture=llama"
say "the worst, and the whole"
$HEFT convert -q --verify-quality --json --quantize mxfp4 in.safetensors a.pt | tail -n 1
$HEFT convert --verify-quality --quantize mxfp4 in.safetensors b.pt
$HEFT convert $llama --verify-quality --quantize q8_0 in.safetensors a.gguf
say "into a pipe"
$HEFT convert $llama --verify-quality --quantize q8_0 --keep 'blk.0.*' --to gguf in.safetensors - > piped.gguf
say "quiet"
$HEFT convert -q $llama --verify-quality --quantize q8_0 in.safetensors c.gguf
say "zeros have no cosine"
$HEFT convert $llama --verify-quality --json --quantize q4_0 zeros.safetensors zeros.gguf
say "nothing is quantised, or nothing is written"
for wrong in "" "--cast bf16" "--quantize mxfp4 --dry-run" "--quantize mxfp4 --share 1/2" "--quantize mxfp4 --finish"; do
    $HEFT convert --verify-quality $wrong in.safetensors no.pt || echo "= $?"
done
$HEFT convert --json --quantize mxfp4 in.safetensors no.pt || echo "= $?"
$HEFT convert --json --verify-quality --quantize mxfp4 --to pt in.safetensors - || echo "= $?"
$HEFT convert $llama --verify-quality --quantize q8_0 none.safetensors no.gguf || echo "= $?"
ls | grep -c '^no\.'
