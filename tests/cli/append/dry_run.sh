$HEFT convert small.safetensors s.zt; cp s.zt t.zt
$HEFT append --dry-run s.zt two.safetensors
$HEFT append --dry-run --compress zstd s.zt two.safetensors
cmp s.zt t.zt && echo untouched
$HEFT append --no-sync s.zt two.safetensors; wc -c < s.zt
$HEFT append --dry-run small.safetensors --keep ids two.safetensors
$HEFT append --dry-run --duplicates first small.safetensors small.safetensors
