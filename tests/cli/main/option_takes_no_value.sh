$HEFT ls --json=yes two.safetensors
