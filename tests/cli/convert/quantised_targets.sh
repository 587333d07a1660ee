# Formats without a form for quantised tensors refuse them, with the ways on.
PYTHONPATH=$CASES $PYTHON -c "import quantised_samples; quantised_samples.write()"
for to in mag embd gguf burnpack gptrs-checkpoint; do
    for in in fp8 gptq; do $HEFT convert --to $to $in.safetensors out || echo "= $?"; done
done
[ -e out ] || echo "nothing is written"
$HEFT convert -q --to mag --dequantize=f32 gptq.safetensors out.mag && $HEFT ls --raw out.mag
$HEFT convert -q --raw-tensors gptq.safetensors stored.mag && $HEFT ls --raw-tensors --raw stored.mag
$HEFT convert gptq.safetensors gptq.npz && $HEFT diff gptq.safetensors gptq.npz --ignore-metadata
echo "== a source type selects no scales"
for cast in f32=bf16 '*:f32=bf16' f8_e4m3fn=bf16 '*_scale_inv=bf16'; do
    $HEFT convert -f --cast "$cast" fp8.safetensors cast.safetensors || echo "= $?"
done
$HEFT ls --raw-tensors --raw cast.safetensors | cut -f 1,2
echo "== what --quantize writes, before anything is read"
for to in gguf mag; do $HEFT convert --quantize int4:32 true.safetensors no.$to || echo "= $?"; done
$HEFT convert -q --quantize '*=mxfp4:gguf' --keep a.weight --to mag true.safetensors no.mag || echo "= $?"
echo "== merge, split and append refuse them, too"
$HEFT merge --to gguf fp8.safetensors true.safetensors --duplicates first no.gguf || echo "= $?"
$HEFT merge -q --to gguf --dequantize=f32 fp8.safetensors true.safetensors --duplicates first merged.gguf && $HEFT ls --raw merged.gguf | cut -f 1,2
$HEFT split --to gguf --count 2 fp8.safetensors no || echo "= $?"
$HEFT split -q --to gguf --dequantize --count 2 fp8.safetensors shards && $HEFT ls --raw shards | cut -f 1,2
$HEFT convert -q --keep norm --to gguf true.safetensors grown.gguf
$HEFT append --drop norm grown.gguf fp8.safetensors || echo "= $?"
$HEFT append -q --drop norm --raw-tensors grown.gguf gptq.safetensors && $HEFT ls --raw-tensors --raw grown.gguf | cut -f 1,2
[ -e no.gguf -o -e no.mag -o -e no ] || echo "nothing is written"
