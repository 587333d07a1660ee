$HEFT convert --keep 'layer.*' --drop '*.bias' two.safetensors a.safetensors && $HEFT ls a.safetensors
