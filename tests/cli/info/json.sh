$HEFT info --json two.safetensors
