$HEFT convert --keep 'layer.*' --keep 'lier.*' --drop x --transpose y --cast 'z*=f16' --cast f32 \
    two.safetensors a.safetensors
