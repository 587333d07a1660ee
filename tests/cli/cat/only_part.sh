# Without --part, a tensor's only part is written whatever its role is.
PYTHONPATH=$CASES/../py $PYTHON -c '
import gen_ztensor1
f = gen_ztensor1.File("1.2")
parts = {"packed": f.part("u8", b"text\n")}
open("m.zt", "wb").write(f.end(f.root({"t": f.tensor("u8", (5,), "x.own", parts)})))'
$HEFT cat m.zt t
$HEFT cat --part packed m.zt t
