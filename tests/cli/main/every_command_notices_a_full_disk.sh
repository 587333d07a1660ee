full() { "$@" > /dev/full 2> err; echo "$? $(cat err)"; }
full $HEFT --help
full $HEFT --version
full $HEFT formats
full $HEFT formats --json
full $HEFT ls two.safetensors
full $HEFT ls --raw two.safetensors
full $HEFT ls --json two.safetensors
full $HEFT info two.safetensors
full $HEFT show two.safetensors ids
full $HEFT cat two.safetensors ids
full $HEFT hash two.safetensors
full $HEFT stats two.safetensors
full $HEFT verify two.safetensors
full $HEFT diff two.safetensors small.safetensors
full $HEFT convert two.safetensors - --to safetensors
full $HEFT convert --dry-run two.safetensors out.safetensors
