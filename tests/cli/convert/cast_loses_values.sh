$HEFT convert --cast u8 types.safetensors out.safetensors; echo $?
$HEFT convert --strict --cast u8 types.safetensors strict.safetensors; echo $?; ls strict.safetensors
$HEFT convert --dry-run --strict --cast u8 types.safetensors strict.safetensors; echo $?
$HEFT convert --strict --to safetensors --cast u8 types.safetensors - | wc -c
$HEFT convert --strict --cast '*=f64' two.safetensors exact.safetensors; echo $?
