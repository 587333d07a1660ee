$HEFT verify --json two.safetensors
