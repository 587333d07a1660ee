scalars() { $PYTHON "$CASES/../py/read_burnpack.py" "$1" | $PYTHON -c 'import json, sys
found = json.load(sys.stdin); print(json.dumps([found["metadata"], found["scalars"]]))'; }
$HEFT convert --set license=MIT small.safetensors s.bpk
$HEFT hash s.bpk > before
$HEFT edit --set burn.scalars.lr:f64=1.5 --set burn.scalars.step:u64=7 --set burn.scalars.on:bool=true s.bpk
scalars s.bpk
$HEFT verify s.bpk
echo "-- a number takes the kind of the one that it replaces, unless its type is said"
$HEFT edit --set burn.scalars.step=8 --set burn.scalars.lr=2 --set burn.scalars.n=1 s.bpk
scalars s.bpk
$HEFT edit --set burn.scalars.step:i64=9 --unset burn.scalars.on s.bpk
scalars s.bpk
echo "-- taken away"
$HEFT edit --unset burn.scalars.on s.bpk
$HEFT edit --unset burn.scalars.lr --unset burn.scalars.step --unset burn.scalars.n s.bpk
scalars s.bpk
$HEFT hash s.bpk | cmp - before
$HEFT edit --set burn.scalars.x=text s.bpk
