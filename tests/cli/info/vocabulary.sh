$HEFT convert --vocab bert/vocab.txt --special sep=none small.safetensors one.weights
$HEFT info --json one.weights
