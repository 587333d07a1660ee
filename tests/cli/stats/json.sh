$HEFT stats --json two.safetensors '*.bias'; $HEFT stats --json types.safetensors odd none
