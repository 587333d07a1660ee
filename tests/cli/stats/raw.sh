$HEFT stats --raw large.safetensors
