$HEFT cat --npy types.safetensors bf
echo $?
$HEFT cat --npy types.safetensors f8
