$HEFT verify --color=always two.safetensors page.safetensors | sed 's/\x1b/^[/g'
