$HEFT convert small.safetensors small.mag && $HEFT hash small.safetensors | sort > a
$HEFT hash small.mag | sort | cmp - a && echo same
