mkfifo p.mag; cat p.mag > a.mag & $HEFT convert small.safetensors p.mag; wait; $HEFT verify a.mag
