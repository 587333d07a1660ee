mkdir d.mag; $HEFT convert --force small.safetensors d.mag
