$HEFT hash --json small.safetensors
