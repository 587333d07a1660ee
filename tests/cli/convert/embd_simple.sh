$HEFT convert bert one.weights
$HEFT convert --format-version simple --transpose '*.dense.weight' one.weights two.weights
$HEFT info two.weights
$HEFT ls two.weights
$HEFT convert --transpose '*.dense.weight' two.weights three.weights
$HEFT diff one.weights three.weights && echo equal
