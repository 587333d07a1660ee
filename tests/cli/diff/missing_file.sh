$HEFT diff two.safetensors missing.safetensors
