cp small.safetensors s
$HEFT edit --dry-run --set license=MIT s
$HEFT edit -n --rename w=v s
cmp s small.safetensors && echo untouched
ls | grep heft || echo 'nothing beside it'
