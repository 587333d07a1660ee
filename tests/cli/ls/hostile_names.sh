$HEFT ls hostile.safetensors | cut -c1-60
$HEFT ls --raw hostile.safetensors | cut -c1-60
