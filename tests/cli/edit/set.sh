$HEFT edit -v --set license=MIT --set epoch=3 --set 'name="7"' small.safetensors
$HEFT edit -v --set license=BSD small.safetensors
$HEFT edit -v --set license=BSD small.safetensors
$HEFT info small.safetensors | grep -A2 Metadata
$HEFT edit -v --unset license --unset epoch small.safetensors
$HEFT info --json small.safetensors | grep -o '"metadata":.*}' | head -1
$HEFT verify small.safetensors
