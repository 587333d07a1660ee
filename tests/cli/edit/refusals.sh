try() { "$@"; echo "= $?"; }
cp small.safetensors s
try $HEFT edit s
try $HEFT edit --set novalue s
try $HEFT edit --set =v s
try $HEFT edit --unset nothing s
try $HEFT edit --set k=v --unset k s
try $HEFT edit --set k=v missing
try $HEFT edit --set k=v .
try $HEFT edit --set k=v cut.safetensors
chmod 444 s; try $HEFT edit --set k=v s; chmod 644 s
cmp s small.safetensors && echo untouched
$HEFT convert small.safetensors m.mag --cast f32
cp m.mag n.mag
try $HEFT edit --set text=words m.mag
cmp m.mag n.mag && echo untouched
ls
