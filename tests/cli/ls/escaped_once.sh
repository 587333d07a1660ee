$HEFT convert --drop 'aaa*' hostile.safetensors few.safetensors
$HEFT ls few.safetensors | cut -c1-40
