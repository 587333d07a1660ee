names() { $HEFT ls --raw two.safetensors | cut -f1 | tr '\n' ' '; echo; }
$HEFT edit --rename 's/^layer\.(.*)/\1.&/' --rename ids=n two.safetensors; names
$HEFT edit --rename 's/./&-/g' --rename n-=m --rename 's/zz/y/' two.safetensors; names
$HEFT edit --rename 's/e/E/' --rename zz=y two.safetensors; echo $?; names
$HEFT edit --rename 's,.*,same,' two.safetensors; echo $?; names
$HEFT edit --rename 's/(/x/' two.safetensors; echo $?
$HEFT convert two.safetensors m.zt
$HEFT append --rename m=k --rename 's/^/ema./' m.zt two.safetensors; $HEFT ls --raw m.zt | cut -f1 | tr '\n' ' '
$HEFT append --rename 's/.*/same/' m.zt two.safetensors; echo $?
