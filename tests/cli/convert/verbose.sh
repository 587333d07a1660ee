$HEFT convert -v small.safetensors a.mag
