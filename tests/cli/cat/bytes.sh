$HEFT cat two.safetensors layer.bias | od -An -tx1
