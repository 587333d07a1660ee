$HEFT convert --dry-run small.safetensors a.mag; ls a.mag 2> /dev/null
$HEFT convert small.safetensors a.mag; wc -c < a.mag
$HEFT convert --dry-run types.safetensors b.mag; echo $?
