# What is left out is not appended, and does not count.
$HEFT convert --keep w small.safetensors m.mag; cp m.mag n.mag
$HEFT append -v --allow-loss --keep u8 --keep bf m.mag types.safetensors
cmp m.mag n.mag && echo untouched
$HEFT append -v --allow-loss --keep u8 --keep odd m.mag types.safetensors
$HEFT ls --raw m.mag | cut -f1
$HEFT append --strict --keep scalar --cast '*=f32' m.mag types.safetensors || echo "= $?"
