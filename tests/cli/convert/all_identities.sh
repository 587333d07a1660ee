$HEFT convert --cast '*=f32' two.safetensors in.safetensors 2> /dev/null
say() { $HEFT ls --json "$1" | grep -o '"name": "[^"]*"\|"attributes": {[^}]*}'; }
$HEFT convert --set-id ids=7 --requires-grad '*.weight=true' in.safetensors out.safetensors && say out.safetensors
$HEFT edit --set-id layer.bias=9 --requires-grad 'ids=true' out.safetensors && say out.safetensors
$HEFT merge --set-id layer.bias=none --requires-grad unset out.safetensors merged.safetensors && say merged.safetensors
