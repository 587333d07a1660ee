$HEFT convert bert one.weights
$HEFT convert --format-version simple one.weights two.weights 2> said
$HEFT convert --to embd --format-version simple one.weights - 2> said | cmp - two.weights && echo the same
$HEFT convert --to embd one.weights - | cmp - one.weights && echo the same
