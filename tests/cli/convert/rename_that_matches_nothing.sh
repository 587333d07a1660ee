# An expression that has no effect is most likely a slip; one may match what another made.
$HEFT convert --rename 's/layer/block/' --rename 's/block/x/g' --rename 's/lier/y/' two.safetensors a.safetensors
$HEFT convert --rename 's/x/y/' --densify 'x*' --sparsify 'y*=coo' two.safetensors b.safetensors
$HEFT convert --rename 's/x/y/' none.safetensors c.safetensors
$HEFT ls --raw a.safetensors
