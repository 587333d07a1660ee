echo precious > a.mag
$HEFT convert small.safetensors a.mag; echo $?; cat a.mag
$HEFT convert --force small.safetensors a.mag; echo $?; $HEFT verify a.mag
