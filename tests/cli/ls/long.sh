$HEFT ls -l two.safetensors
