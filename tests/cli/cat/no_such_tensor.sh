$HEFT cat two.safetensors nothing
