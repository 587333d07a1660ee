$HEFT verify --json missing.safetensors
