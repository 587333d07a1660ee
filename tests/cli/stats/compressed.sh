$HEFT convert --compress zstd --allow-loss large.safetensors z.zt 2>reason || { cat reason; exit 77; }
$HEFT ls --json z.zt | grep -c '"encoding": "zstd"' >count
test "$(cat count)" != 0 && echo "compressed parts"
$HEFT stats --raw large.safetensors | sort >plain
$HEFT stats --raw z.zt | sort | cmp - plain && echo the same
