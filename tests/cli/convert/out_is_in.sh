ln -s small.safetensors soft.safetensors; ln small.safetensors hard.safetensors
cksum < small.safetensors > before
for o in small.safetensors ./small.safetensors soft.safetensors hard.safetensors; do
    $HEFT convert --force small.safetensors $o; echo $?
done
$HEFT convert --force --to safetensors small.safetensors - >> small.safetensors; echo $?
cksum < small.safetensors | cmp - before && echo untouched
