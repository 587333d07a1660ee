$HEFT convert bert one.weights
rm bert/vocab.txt && mv tokenizer.json bert
$HEFT convert bert two.weights && cmp one.weights two.weights && echo the same
