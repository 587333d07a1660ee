$HEFT lss two.safetensors
