$HEFT convert bert/ out.weights
$HEFT ls out.weights
$HEFT info out.weights
$HEFT cat out.weights --part vocab
