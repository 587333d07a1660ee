$HEFT convert --vocab bert/vocab.txt small.safetensors one.weights
$HEFT cat one.weights --part vocab | cmp - bert/vocab.txt && echo the same
$HEFT cat --npy one.weights --part vocab | tail -c 20 | od -A n -t u4 -w20
