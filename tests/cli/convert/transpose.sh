$HEFT convert --transpose '*.weight' two.safetensors a.safetensors
$HEFT show a.safetensors layer.weight
$HEFT convert --transpose 'ids' two.safetensors b.safetensors; echo $?; ls b.safetensors 2> /dev/null
