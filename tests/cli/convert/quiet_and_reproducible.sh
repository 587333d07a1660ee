$HEFT convert small.safetensors a.mag && $HEFT convert --threads 1 small.safetensors b.mag
cmp a.mag b.mag && echo same
