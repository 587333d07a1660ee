$HEFT cat --npy two.safetensors layer.weight > a.npy
head -c 10 a.npy | od -An -tx1; tail -c +11 a.npy | head -n 1 | sed 's/ *$/|/'
wc -c < a.npy; head -n 1 a.npy | wc -c
$HEFT cat --npy types.safetensors scalar | tail -c +11 | head -n 1 | sed 's/ *$/|/'
$HEFT cat --npy types.safetensors b | tail -c +11 | head -n 1 | sed 's/ *$/|/'
$HEFT cat --npy types.safetensors none | tail -c +11 | sed 's/ *$/|/'
