cp small.safetensors s; ln s hard; ln -s s soft
$HEFT edit -v --set license=MIT soft
readlink soft
cmp hard small.safetensors && echo "the other name keeps what was there"
ln -f s hard
$HEFT edit -v --set license=BSD s
cmp s hard && echo "both names show it"
chmod 640 s; $HEFT edit --set "long=$(printf %0300d 1)" s; stat -c %a s
