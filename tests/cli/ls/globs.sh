$HEFT ls two.safetensors 'layer.*' '*ds'; $HEFT ls two.safetensors 'nothing*'
