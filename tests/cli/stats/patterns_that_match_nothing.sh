$HEFT stats --raw two.safetensors '*.bias' 'x*' | cut -f1; $HEFT stats --json two.safetensors y
