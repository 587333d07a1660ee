$HEFT convert small.safetensors s.zt; ln s.zt hard; ln -s s.zt soft
$HEFT append -v soft two.safetensors
readlink soft
cmp s.zt hard && echo "both names show it"
cp small.safetensors s; chmod 640 s; ln s other
$HEFT append -v s two.safetensors
cmp other small.safetensors && echo "the other name keeps what was there"
stat -c %a s
