$HEFT ls -q two.safetensors
