$HEFT convert --vocab v.txt small.safetensors a.mag
