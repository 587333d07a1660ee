# Tensors of a PyTorch file that share one storage, and more of them than are shown.
$PYTHON - <<'P'
import zipfile
from samples import f32
def text(s):
    return b"X" + len(s).to_bytes(4, "little") + s.encode()
storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\x06tQ"
view = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0(K\x02K\x03t(K\x03K\x01t\x89NtR"
for name, count in (("few", 3), ("many", 60)):
    with zipfile.ZipFile(name + ".pt", "w") as z:
        tensors = b"".join(text("t%02d" % i) + view for i in range(count))
        z.writestr("m/data.pkl", b"\x80\x02}(" + tensors + b"u.")
        z.writestr("m/data/0", f32(*range(6)))
        z.writestr("m/version", "3\n")
P
$HEFT info few.pt
$HEFT info many.pt | sed -n '/more,/p'
$HEFT ls few.pt
$HEFT ls -l few.pt
$HEFT convert few.pt few.zt && $HEFT info few.zt
