$HEFT hash small.safetensors
