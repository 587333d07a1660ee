# Every file of the folder that the model does not read is counted, also in a set and past the first of many.
$HEFT split -q --count 2 two.safetensors set
for i in 3 4 5; do cp set/model-00001-of-00002.safetensors set/model-0000$i-of-00002.safetensors; done
$HEFT verify set 2>&1 | grep -c warning
$HEFT verify set
for i in 1 2 3 4 5 6 7 8 9 a b c d e f g h i; do cp two.safetensors set/more-$i.safetensors; done
$HEFT verify set | tail -n 2
