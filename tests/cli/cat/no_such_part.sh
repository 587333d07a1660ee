$HEFT cat two.safetensors ids --part scale
echo $?
$HEFT cat two.safetensors --part vocab
