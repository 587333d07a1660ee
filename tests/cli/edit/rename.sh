$HEFT hash two.safetensors > before
$HEFT ls two.safetensors
$HEFT edit --rename layer.weight=layer.bias --rename layer.bias=layer.weight two.safetensors; $HEFT ls two.safetensors
$HEFT edit --rename layer.weight=layer.bias --rename layer.bias=layer.weight two.safetensors; $HEFT hash two.safetensors | cmp - before && echo same
$HEFT edit --rename ids=layer.bias two.safetensors; echo $?
$HEFT edit --rename ids=x --rename ids=y two.safetensors; echo $?
$HEFT edit --rename nothing=x two.safetensors; echo $?
$HEFT edit --rename ids two.safetensors; echo $?
$HEFT ls two.safetensors
