# Answers that end the confusion.
$HEFT small.safetensors; echo "= $?"
$HEFT ls small.safetensors two.safetensors; echo "= $?"
$HEFT ls two.safetensors layer; echo "= $?"
$HEFT ls hf:owner/name; echo "= $?"
$HEFT ls https:/example.org/m.safetensors; echo "= $?"
