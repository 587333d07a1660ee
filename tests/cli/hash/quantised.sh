# --logical hashes what quantised tensors represent: the digests are those of the decoded file.
PYTHONPATH=$CASES $PYTHON -c "import quantised_samples; quantised_samples.write()"
$HEFT convert -q --dequantize fp8.safetensors decoded.safetensors
$HEFT hash --logical fp8.safetensors > logical; $HEFT hash decoded.safetensors | diff - logical && echo same
$HEFT hash true.safetensors | diff - logical && echo "same as the judge's"
$HEFT hash fp8.safetensors | wc -l
$HEFT hash --json --logical fp8.safetensors 'a.*' | grep -c '"a.weight"'
