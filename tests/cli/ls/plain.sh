$HEFT ls two.safetensors
