$HEFT convert bert one.weights
$HEFT convert one.weights out.safetensors
$HEFT convert --strict one.weights strict.safetensors
