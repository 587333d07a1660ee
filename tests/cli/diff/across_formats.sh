$HEFT convert small.safetensors small.mag && $HEFT diff small.safetensors small.mag && echo equal
