$HEFT stats types.safetensors
