$HEFT ls none.safetensors; $HEFT ls --json none.safetensors
