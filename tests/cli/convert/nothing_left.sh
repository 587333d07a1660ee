# Patterns that leave no tensor destroy nothing.
echo precious > precious.gguf
try() { echo "-- $*"; $HEFT convert --force "$@" precious.gguf; echo "exit $?"; } 2>&1
try --keep 'nothing.*' two.safetensors
try --drop '*' two.safetensors
try --keep 'layer.*' --drop '*er*' two.safetensors
try --keep '[a' two.safetensors
try --keep '' --dry-run two.safetensors
try --keep '*' none.safetensors
$HEFT convert --to gguf --keep 'nothing.*' two.safetensors - | wc -c
cat precious.gguf
$HEFT convert none.safetensors none.gguf && $HEFT ls --raw none.gguf
