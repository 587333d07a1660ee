$HEFT convert --allow-loss types.safetensors types.mag; echo $?
$HEFT ls types.mag
