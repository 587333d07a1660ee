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
