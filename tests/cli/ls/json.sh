$HEFT ls --json two.safetensors
