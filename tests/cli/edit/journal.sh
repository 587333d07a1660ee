try() { "$@"; echo "= $?"; }
cp small.safetensors s; cp s t
echo 'no journal at all' > s.heft-journal
try $HEFT ls s
try $HEFT convert s s.mag
try $HEFT edit --set k=v s
try $HEFT edit --dry-run --set k=v s
try $HEFT edit s
rm s.heft-journal
cmp s t && echo untouched
try $HEFT ls s
