$HEFT ls --bytes large.safetensors; $HEFT ls large.safetensors
