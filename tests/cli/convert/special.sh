$HEFT convert --vocab bert/vocab.txt --special pad=1,mask=none small.safetensors one.weights
$HEFT info one.weights | grep Vocabulary
$HEFT convert --special unk=0 one.weights two.weights
$HEFT info one.weights | grep Vocabulary
$HEFT info two.weights | grep Vocabulary
