$HEFT info two.safetensors
