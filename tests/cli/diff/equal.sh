$HEFT diff two.safetensors two.safetensors; echo $?
$HEFT diff --json two.safetensors two.safetensors
