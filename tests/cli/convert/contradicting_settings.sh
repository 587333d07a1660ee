# Settings beside the weights that name another method are an error; listings warn.
PYTHONPATH=$CASES $PYTHON -c "import quantised_samples; quantised_samples.write()"
mkdir m; cp fp8.safetensors m/model.safetensors
settings() { echo "{\"quantization_config\": {\"quant_method\": \"$1\"}}" > m/$2; }
for file in config.json quantize_config.json quant_config.json hf_quant_config.json; do
    settings gptq $file
    for in in m m/model.safetensors; do
        $HEFT convert --dequantize $in out.safetensors || echo "= $?"
    done
    rm m/$file
done
[ -e out.safetensors ] || echo "nothing is written"
settings gptq config.json
$HEFT stats m || echo "= $?"
$HEFT ls --raw m | cut -f 1,2
$HEFT cat --raw-tensors m a.weight | wc -c
settings fp8 config.json
$HEFT convert --dequantize m/model.safetensors out.safetensors && $HEFT diff out.safetensors true.safetensors
