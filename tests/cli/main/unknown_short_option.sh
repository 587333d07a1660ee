$HEFT ls -Q two.safetensors
