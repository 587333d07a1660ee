try() { "$@"; echo "= $?"; }
$HEFT convert small.safetensors s.zt; cp s.zt t.zt
echo 'no journal at all' > s.zt.heft-journal
try $HEFT append s.zt two.safetensors
try $HEFT append --dry-run s.zt two.safetensors
rm s.zt.heft-journal
cmp s.zt t.zt && echo untouched
