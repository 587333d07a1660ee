$HEFT show large.safetensors grid; $HEFT show large.safetensors line
