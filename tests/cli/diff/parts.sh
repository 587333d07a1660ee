# Tensors whose parts cannot be compared: other sizes, other roles, and numbers of another kind.
# Parts without a type are compared as bytes.
$PYTHON -c '
from samples import f32, write_safetensors
for name, values in ("two", (1, 0, 0, 4)), ("three", (1, 0, 3, 4)):
    write_safetensors(name + ".safetensors", {"w": ("F32", [2, 2], f32(*values))})'
for name in two three; do
    $HEFT convert --sparsify '*=coo' $name.safetensors $name.zt
done
PYTHONPATH=$CASES/../py $PYTHON -c '
import gen_ztensor1
for name, *parts in (("a", ("p", "f32", bytes(16)), ("q", "u8", bytes(8))),
                     ("role", ("p", "f32", bytes(16)), ("r", "u8", bytes(8))),
                     ("complex", ("p", "f32", bytes(16)), ("q", "c64", bytes(8)))):
    f = gen_ztensor1.File("1.2")
    made = {role: f.part(dtype, data) for role, dtype, data in parts}
    open(name + ".zt", "wb").write(f.end(f.root({"t": f.tensor("f32", (4,), "x.own", made)})))
for name, last in ("old", b"."), ("new", b"?"): # version 1.0 gives parts no types
    f = gen_ztensor1.File("1.0")
    parts = {"p": f.part("f32", bytes(15) + last), "q": f.part("u8", bytes(8))}
    open(name + ".zt", "wb").write(f.end(f.root({"t": f.tensor("f32", (4,), "x.own", parts)})))'
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try diff two.zt three.zt
try diff --json two.zt three.zt
try diff a.zt role.zt
try diff a.zt complex.zt
try diff a.zt a.zt
try diff old.zt new.zt
try diff --json old.zt new.zt
# A position has as many numbers as the tensor has dimensions, or one if these are more than 64.
$PYTHON -c '
from samples import f32, write_safetensors
for name, last in ("m", 8), ("n", 9):
    values = f32(1, 2, 3, 4, 5, 6, 7, last)
    write_safetensors(name + ".safetensors", {
        "64": ("F32", [2] * 3 + [1] * 61, values), "65": ("F32", [2] * 3 + [1] * 62, values),
        "scalar": ("F32", [], f32(last))})'
$HEFT diff m.safetensors n.safetensors | grep -oE '^[a-z0-9]+|[^ ]+$'
$HEFT diff --json m.safetensors n.safetensors | grep -o '"first": [^}]*'
