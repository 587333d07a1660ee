# Numbers under burn.scalars. are typed scalars of a Burnpack; what an independent reader sees of them.
scalars() { $PYTHON "$CASES/../py/read_burnpack.py" "$1" | $PYTHON -c 'import json, sys
found = json.load(sys.stdin); print(json.dumps([found["metadata"], found["scalars"]]))'; }
$HEFT convert --set burn.scalars.lr:f64=1.5 --set burn.scalars.step:u64=7 --set burn.scalars.on:bool=true \
    --set burn.scalars.n=-3 --set burn.scalars.r:f32=0.5 --set burn.scalars.note=5 --set note=5 small.safetensors s.bpk
scalars s.bpk
echo "-- what is given replaces what is there"
$HEFT convert --set burn.scalars.lr=2.5 --set burn.scalars.more=1 s.bpk t.bpk
scalars t.bpk
echo "-- .mag has a number under that key, which is a scalar again"
$HEFT convert --cast f32 --set burn.scalars.lr:f64=nan --set other:f64=1 small.safetensors m.mag
$HEFT convert m.mag u.bpk
scalars u.bpk
echo "-- refused"
for bad in burn.scalars.x=text burn.scalars.=1 burn.scalars.x:null= burn.scalars.x:str=1; do
    $HEFT convert --set "$bad" small.safetensors x.bpk
    echo $?
done
[ ! -e x.bpk ]
