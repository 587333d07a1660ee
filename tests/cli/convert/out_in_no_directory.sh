$HEFT convert small.safetensors nowhere/a.mag
