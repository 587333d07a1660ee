$HEFT info two.safetensors small.safetensors
