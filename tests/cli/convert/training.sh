say() { $HEFT ls --json "$1" | grep -o '"name": "[^"]*"\|"attributes.*}}'; }
try() { command=$1; shift; $HEFT $command "$@"; echo "exit $?"; }
$HEFT convert --cast '*=f32' two.safetensors in.safetensors 2> /dev/null
for to in gptrs-checkpoint gptrs-archive; do
    try convert --to $to --requires-grad '*.bias=false' --requires-grad 'layer*=true' --base-ids none in.safetensors $to && say $to
done
try merge --to gptrs-checkpoint --base-ids none --requires-grad true in.safetensors merged && say merged
try convert --to gptrs-checkpoint --requires-grad unset --base-ids name merged again && say again
try convert --requires-grad true in.safetensors out.safetensors && say out.safetensors
try convert --requires-grad true in.safetensors out.weights && say out.weights
try convert --base-ids none in.safetensors none.weights
try convert --requires-grad 'x*=true' in.safetensors x.gten
try convert --requires-grad '*=yes' in.safetensors y.gten
try merge --base-ids none in.safetensors y.mag
try merge --requires-grad 2 in.safetensors y.gten
ls -- *.weights *.gten
