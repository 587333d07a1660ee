# An integer that takes the place of a floating-point number becomes one where f64 has it; a larger one stays as it is.
$HEFT convert --set x:f64=0.5 small.safetensors m.gguf
for n in 9007199254740992 9007199254740993 -9007199254740992 -9007199254740993; do
    $HEFT edit --set x:f64=0.5 m.gguf
    $HEFT edit --set x=$n m.gguf
    $HEFT info m.gguf | grep -w x
done
