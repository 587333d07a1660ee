# a tensor of another file takes the place of one, or nothing changes
$PYTHON - <<'END'
import json, struct
import numpy as np
a = np.arange(8, dtype=np.float32)
np.save("a.npy", a / 3)
np.save("long.npy", np.arange(9, dtype=np.float32))
np.savez("two.npz", a=a * 2, b=a * 4)
np.save("half.npy", a.astype(np.float16))
head = json.dumps({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]},
                   "h": {"dtype": "BF16", "shape": [8], "data_offsets": [32, 48]},
                   "c": {"dtype": "F32", "shape": [8], "data_offsets": [48, 80]}}).encode()
head += b" " * (-len(head) % 8)
open("m", "wb").write(struct.pack("<Q", len(head)) + head + a.tobytes() + b"\0\x3f" * 8 + a.tobytes())
np.save("other:name", a)
END
try() { $HEFT edit "$@"; echo "exit $?"; }
cp m old
try -v --tensor a=a.npy m
try -v --tensor a=two.npz --tensor c=two.npz:b m
$HEFT cat m a | od -An -f; $HEFT cat m c | od -An -f
try --tensor h=a.npy m
try -v --tensor h=a.npy --round m
$HEFT cat m h | od -An -tx2
try --tensor a=long.npy m
try -n --tensor a=long.npy --allow-change m
try -v --tensor a=long.npy --allow-change m
$HEFT ls m; $HEFT verify m
try --tensor a=other:name.npy --allow-change m && $HEFT cat m a | od -An -f
# nothing of this changes the file
cp m old
try --tensor nope=a.npy m
try --tensor a=missing.npy m
try --tensor a=two.npz:nope m
try --tensor c=two.npz m
try --tensor a m
try --tensor a= m
try --tensor a=a.npy --tensor a=a.npy m
try --tensor a=a.npy --tensor c=long.npy m
try --tensor a=a.npy --set x=1 m
try --round m
try --tensor a=half.npy m
echo nonsense > text
try --tensor a=text m
cmp m old
ls | grep heft || echo 'nothing beside it'
