$HEFT split --count 2 two.safetensors set
$HEFT ls -l set
$HEFT ls set
