try() { "$@"; echo "= $?"; }
$HEFT split --count 2 --name m two.safetensors set
$HEFT convert small.safetensors s.zt
$HEFT append s.zt set
$HEFT ls s.zt
$HEFT convert --force small.safetensors s.zt
$HEFT append s.zt set/* # the index, and what it names
$HEFT ls --raw s.zt | cut -f1
for f in set/*; do
    cp "$f" before
    try $HEFT append "$f" small.safetensors
    cmp "$f" before
done
rm set/m-00002-of-00002.safetensors
try $HEFT append s.zt set
