$HEFT convert small.safetensors a.xyz; echo $?
$HEFT convert --to nothing small.safetensors a.mag; echo $?
$HEFT convert small.safetensors -; echo $?
