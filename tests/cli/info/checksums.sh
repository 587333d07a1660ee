$HEFT convert --drop ids --allow-loss two.safetensors two.mag 2> /dev/null
$HEFT info two.mag
$HEFT info --json two.mag
