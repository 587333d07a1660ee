$HEFT stats two.safetensors
