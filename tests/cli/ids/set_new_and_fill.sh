# What an independent reader finds in the files.
ids() { $PYTHON "$CASES/../py/read_burnpack.py" "$1" | $PYTHON -c 'import json, sys
print(*("%s=%s" % (t["name"], t["param_id"]) for t in json.load(sys.stdin)["tensors"]))'; }
count() { ids "$1" | $PYTHON -c 'import sys
ids = [pair.split("=")[1] for pair in sys.stdin.read().split()]
print(len(ids), len(set(ids)), "None" in ids)'; }
echo "-- convert"
$HEFT convert --set-id w=7 --set-id h=5800000000000 small.safetensors a.bpk
ids a.bpk
$HEFT convert --new-ids --id-seed 1 small.safetensors b.bpk
$HEFT convert --new-ids --id-seed 0x1 --threads 2 a.bpk c.bpk
ids b.bpk
ids c.bpk
$HEFT convert --new-ids small.safetensors d.bpk
$HEFT convert --new-ids small.safetensors e.bpk
count d.bpk
[ "$(ids d.bpk)" != "$(ids e.bpk)" ]; echo $?
$HEFT convert --fill-ids --set-id w=none a.bpk f.bpk
ids f.bpk
$HEFT convert --keep w --set-id w=42 a.bpk g.bpk
ids g.bpk
$HEFT convert --set-id w=vvvvvvvvvvvvu --set-id h=tv6qn2b78khg2 small.safetensors text.bpk
ids text.bpk
echo "-- through a format that keeps ids as metadata"
$HEFT convert --set-id w=18446744073709551615 small.safetensors h.safetensors
$HEFT convert h.safetensors h.bpk
ids h.bpk
echo "-- edit"
$HEFT edit --set-id w=0xff --set-id h=none -n a.bpk
ids a.bpk
$HEFT edit --set-id w=0xff --set-id h=none a.bpk
ids a.bpk
$HEFT edit --fill-ids --id-seed 9 a.bpk
ids a.bpk
$HEFT edit --set-id w=1 --set-id h=255 a.bpk
ids a.bpk
$HEFT edit --set-id w=255 --set-id h=1 --rename w=h --rename h=w a.bpk
ids a.bpk
$HEFT verify a.bpk
$HEFT edit --new-ids a.bpk
count a.bpk
echo "-- merge"
$HEFT convert --rename 's/^/x./' small.safetensors x.bpk
$HEFT merge --set-id x.w=5 --fill-ids --id-seed 3 a.bpk x.bpk m.bpk
count m.bpk
ids m.bpk | grep -o 'x.w=5'
$HEFT merge --new-ids a.bpk x.bpk n.bpk
count n.bpk
echo "-- refused"
try() { $HEFT "$@"; echo $?; }
try convert --set-id w small.safetensors y.bpk
try convert --set-id w=18446744073709551616 small.safetensors y.bpk
try convert --set-id w=-1 small.safetensors y.bpk
try convert --set-id w=0x small.safetensors y.bpk
try convert --set-id w=000000000000w small.safetensors y.bpk
try convert --set-id w=1 --set-id h=1 small.safetensors y.bpk
try convert --set-id w=1 --set-id w=2 small.safetensors y.bpk
try convert --set-id nobody=1 small.safetensors y.bpk
try convert --set-id w=5 m.bpk y.bpk
try convert --id-seed 1 --set-id w=5 small.safetensors y.bpk
try convert --id-seed x --new-ids small.safetensors y.bpk
try merge --set-id nobody=5 a.bpk x.bpk y.bpk
try edit --set-id nobody=5 a.bpk
try edit --set-id x.h=5 m.bpk
try edit --id-seed 5 a.bpk
$HEFT convert --cast f32 small.safetensors m.mag
try edit --set-id w=5 m.mag
try convert --strict --set-id w=5 --cast f32 small.safetensors y.mag
[ ! -e y.bpk ] && [ ! -e y.mag ]
