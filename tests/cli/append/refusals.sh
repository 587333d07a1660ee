try() { "$@"; echo "= $?"; }
$HEFT convert small.safetensors m.zt
cp m.zt n.zt
try $HEFT append m.zt
try $HEFT append m.zt missing
try $HEFT append missing small.safetensors
try $HEFT append . small.safetensors
try $HEFT append m.zt small.safetensors
try $HEFT append m.zt two.safetensors large.safetensors two.safetensors
try $HEFT append m.zt m.zt
try $HEFT append --keep 'nothing*' m.zt two.safetensors
try $HEFT append --rename 's/layer.weight/w/' m.zt two.safetensors
try $HEFT append --duplicates both m.zt two.safetensors
try $HEFT append --compress lzma m.zt two.safetensors
try $HEFT append --compress zstd:40 m.zt two.safetensors
try $HEFT append --digest md5 m.zt two.safetensors
try $HEFT append --align 3 m.zt two.safetensors
try $HEFT append --threads 9999 m.zt two.safetensors
try $HEFT append m.zt cut.safetensors
try $HEFT append cut.safetensors m.zt
try $HEFT append m.zt none.safetensors
chmod 444 m.zt; try $HEFT append m.zt two.safetensors; chmod 644 m.zt
cmp m.zt n.zt && echo untouched
$HEFT convert --keep w small.safetensors w.npy
cp w.npy n.npy
try $HEFT append w.npy two.safetensors
try $HEFT append --dry-run w.npy two.safetensors
cmp w.npy n.npy && echo untouched
$HEFT convert --keep w small.safetensors m.mag
cp m.mag n.mag
try $HEFT append m.mag types.safetensors
try $HEFT append --dry-run m.mag types.safetensors
cmp m.mag n.mag && echo untouched
ls -A | grep heft || echo nothing is left
