$HEFT verify two.safetensors small.safetensors
