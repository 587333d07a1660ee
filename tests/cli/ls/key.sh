$PYTHON -c 'import samples; samples.write_nested("nested.pt")'
$HEFT ls nested.pt
$HEFT ls --key model nested.pt
$HEFT ls --key model.head nested.pt
$HEFT ls --key optimizer nested.pt
$HEFT info --key model.head nested.pt | grep Tensors
$HEFT verify nested.pt
$HEFT ls --key model.tail nested.pt; echo $?
$HEFT ls --key model two.safetensors; echo $?
$HEFT ls --key= nested.pt; echo $?
