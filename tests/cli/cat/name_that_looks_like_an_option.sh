$HEFT cat hostile.safetensors -- -starts-with-dash
