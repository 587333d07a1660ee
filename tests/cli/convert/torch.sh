$PYTHON -c 'import samples; samples.write_nested("nested.pt")'
$HEFT convert --key model nested.pt model.safetensors
$HEFT diff --key model nested.pt model.safetensors && echo equal
$HEFT show model.safetensors turned
$HEFT convert nested.pt other.pt; echo $?
