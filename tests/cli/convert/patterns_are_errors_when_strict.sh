# A pattern that matches nothing is a warning, and an error under --strict, wherever there are patterns.
for option in '--keep layer.* --keep nothing' '--drop nothing' '--cast nothing=f16' '--cast f16=f32' '--rename nothing=x' \
    '--rename s/nothing/x/' '--transpose nothing' '--densify nothing' '--compress nothing=zstd' '--digest nothing=crc32c' \
    '--sparsify nothing=csr' '--requires-grad nothing=true' '--drop layer'; do
    $HEFT convert --force $option two.safetensors a.zt; echo "= $?"
    $HEFT convert --force --strict $option two.safetensors b.zt; echo "= $?"
done
ls b.zt
$HEFT split --strict --count 2 --to ztensor --digest nothing=crc32c two.safetensors shards; echo "= $?"
$HEFT merge --strict --compress nothing=zstd two.safetensors c.zt; echo "= $?"
$HEFT append --strict --drop nothing a.zt small.safetensors; echo "= $?"
$HEFT edit --strict --rename s/nothing/x/ a.zt; echo "= $?"
