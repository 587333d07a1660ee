$HEFT convert --cast 'layer.b*=f64' --cast 'layer.*=bf16' two.safetensors a.safetensors
$HEFT ls a.safetensors; $HEFT show a.safetensors layer.bias; $HEFT show a.safetensors layer.weight
$HEFT convert --cast f99 two.safetensors b.safetensors
