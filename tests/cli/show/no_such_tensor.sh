$HEFT show two.safetensors nothing
