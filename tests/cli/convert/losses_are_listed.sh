$HEFT convert two.safetensors two.mag; echo $?; ls two.mag 2> /dev/null
$HEFT convert --cast ids=i32 two.safetensors two.mag; echo $?; $HEFT ls two.mag
$HEFT convert --strict --cast ids=i32 two.safetensors strict.mag; echo $?; ls strict.mag 2> /dev/null
