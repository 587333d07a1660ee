for t in layer.weight layer.bias ids; do $HEFT show two.safetensors $t; done
