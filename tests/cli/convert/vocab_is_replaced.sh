$HEFT convert bert one.weights
printf 'a\nb\r\n\nc' > other.txt
$HEFT convert -v --vocab other.txt one.weights two.weights
$HEFT cat two.weights --part vocab
