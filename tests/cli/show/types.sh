for t in b u8 bf f8 scalar none odd; do $HEFT show types.safetensors $t; done
