$HEFT convert --vocab bert/vocab.txt small.safetensors one.weights
$HEFT convert --vocab tokenizer.json small.safetensors two.weights
cmp one.weights two.weights && $HEFT info one.weights
