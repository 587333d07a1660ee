$HEFT ls --json two.safetensors '*.bias'
