$HEFT convert small.safetensors small.gptrs 2>/dev/null
$HEFT ids small.safetensors
$HEFT ids small.gptrs
$HEFT ids --json small.gptrs
