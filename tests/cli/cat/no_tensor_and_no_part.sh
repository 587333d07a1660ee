$HEFT cat two.safetensors
