$HEFT ls --raw -l two.safetensors
