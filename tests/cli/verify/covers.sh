# What a good result stands for comes from the checksums in the file.
first=$($HEFT ls --json two.safetensors | $PYTHON -c 'import json, sys; print(json.load(sys.stdin)["tensors"][0]["name"])')
$HEFT convert -q two.safetensors two.mag
$HEFT convert -q two.safetensors two.zt
$HEFT convert -q --to ztensor --digest '*=crc32c' two.safetensors all.zt
$HEFT convert -q --to ztensor --digest "$first=sha256" two.safetensors some.zt
$HEFT convert -q two.safetensors two.npz
for f in two.safetensors two.mag two.zt all.zt some.zt two.npz; do
    $HEFT verify "$f"
done
$HEFT verify --quick two.npz
$HEFT verify --json some.zt two.safetensors
