# Files given with options are inputs as well, by whatever name, and so is what a folder has beside its weights.
cp bert/vocab.txt words.txt
cp words.txt words.kept
ln -s words.txt soft.weights
ln words.txt hard.weights
for out in words.txt soft.weights hard.weights; do
    $HEFT convert -f --to embd --vocab words.txt small.safetensors $out; echo $?
done
echo '{"kind":"gpt","config":{}}' >config.gptrs
$HEFT convert -f --config config.gptrs small.safetensors config.gptrs; echo $?
$HEFT convert --to gptrs-checkpoint --config config.gptrs small.safetensors - >>config.gptrs; echo $?
for out in vocab.txt config.json; do
    $HEFT convert -f --to embd bert bert/$out; echo $?
done
$HEFT merge -f --to ztensor two.safetensors small.safetensors small.safetensors; echo $?
cmp words.txt words.kept && cmp bert/vocab.txt words.kept && cat config.gptrs bert/config.json && ls -d soft.weights
