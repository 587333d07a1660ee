$HEFT convert --drop ids --allow-loss two.safetensors two.mag 2> /dev/null
$HEFT info two.mag
$HEFT info --json two.mag
# Of a set, with the shard.
$HEFT split --no-sync --count 2 --to ztensor two.safetensors set
$HEFT info set | grep -A 9 Checksums
