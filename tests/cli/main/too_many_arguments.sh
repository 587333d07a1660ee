$HEFT hash two.safetensors small.safetensors
