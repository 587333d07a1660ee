$HEFT ls --color=sometimes two.safetensors
