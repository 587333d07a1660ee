# Words that people type: aliases are understood, other words get a suggestion.
for w in list tensors; do $HEFT $w --raw two.safetensors | wc -l; done
$HEFT compare two.safetensors two.safetensors
$HEFT check two.safetensors > out && echo checked
for w in inspect rename vrify xyzzy; do $HEFT $w two.safetensors; echo $?; done
$HEFT ls --jsn two.safetensors; echo $?
$HEFT convert --alow-loss=x two.safetensors o.safetensors; echo $?
$HEFT ls --zzz two.safetensors; echo $?
$HEFT show two.safetensors layer.wieght; echo $?
$HEFT show two.safetensors q; echo $?
for t in FP16 half bfloat16 Float64 double; do
    $HEFT convert -f --cast "layer.*=$t" two.safetensors o.safetensors && $HEFT ls --raw o.safetensors 'layer.bias'
done
$HEFT convert -f --cast bf61 two.safetensors o.safetensors; echo $?
$HEFT convert -f --cast zzzz two.safetensors o.safetensors; echo $?
for t in pt torch zt GGUF safetensor; do $HEFT convert -f --to $t two.safetensors o; echo "$t $?"; done
$HEFT convert two.safetensors o.pth; echo $?
for n in 1.5kb 0.5MiB 2g 1.5 1.2345678k 1.5x .5k 99999999999g 18446744073709551615.9k; do
    $HEFT split --force --max-size $n two.safetensors shards > out 2>&1; echo "$n $?"
done
