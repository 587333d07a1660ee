$HEFT info hostile.safetensors | sed 's/hostile/H/'
