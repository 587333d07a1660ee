# --cast takes [GLOB:][FROM=]DTYPE; without a pattern a floating-point type takes floating-point tensors only.
types() { $HEFT ls --raw "$1" | cut -f 1,2 | tr '\n' ' '; echo; }
for cast in bf16 f32=bf16 'layer.b*:f32=bf16' 'layer.b*:bf16' 'ids=f32' 'i64=i32' '*=f64' i64; do
    echo "== $cast"
    $HEFT convert --force --cast "$cast" two.safetensors a.safetensors && types a.safetensors
done
echo "== first match"
$HEFT convert --force --cast layer.bias=f64 --cast f32=f16 two.safetensors a.safetensors && types a.safetensors
for cast in f16=bf16 'ids:f32=f16' f23=bf16 int4 '*=int4'; do
    echo "== $cast"; $HEFT convert --force --cast "$cast" two.safetensors a.safetensors || echo "= $?"
done
echo "== scales that keep their type are counted"
$PYTHON - <<'P'
from samples import write_safetensors
zeros = lambda dtype, bytes_, *shape: (dtype, list(shape), bytes(bytes_))
write_safetensors("scales.safetensors", {f"{l}.{n}": t for l in "ab" for n, t in {
    "weight": zeros("F8_E4M3", 64, 8, 8), "weight_scale": zeros("F32", 32, 8, 1), "norm": zeros("F32", 8, 2)}.items()})
P
$HEFT convert --force --cast f32=f16 scales.safetensors a.safetensors
$HEFT convert --force --cast 'a.*:f32=f16' scales.safetensors a.safetensors
$HEFT convert --force --cast '*.norm:f32=f16' scales.safetensors a.safetensors
