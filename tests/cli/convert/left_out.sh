# Content that is no tensor is named by each command, and never makes two models equal.
$PYTHON - <<'P'
import struct, zipfile
def npy(descr, shape, data):
    h = ("{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)).encode()
    h += b" " * (-(11 + len(h)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h + data
def npz(path, **arrays):
    with zipfile.ZipFile(path, "w") as z:
        for name, array in arrays.items():
            z.writestr(zipfile.ZipInfo(name + ".npy"), array)
w = npy("<f4", (2,), struct.pack("<2f", 1, 2))
npz("a.npz", w=w, names=npy("<U1", (1,), b"a\0\0\0"))
npz("b.npz", w=w, names=npy("<U1", (1,), b"b\0\0\0"))
npz("w.npz", w=w)
P
$HEFT convert a.npz a.safetensors; echo "convert $?"
$HEFT convert --strict a.npz strict.safetensors; echo "convert --strict $?"
$HEFT merge --strict a.npz strict.safetensors; echo "merge --strict $?"
$HEFT split --strict --max-size 4K --to safetensors a.npz strict; echo "split --strict $?"
ls -d strict* 2> /dev/null
$HEFT verify --strict a.npz; echo "verify --strict $?"
$HEFT diff --quiet a.npz a.npz; echo "diff with itself $?"
$HEFT diff a.npz b.npz; echo "diff $?"
$HEFT diff --json a.npz w.npz | grep -e equal -e left_out; echo "diff $?"
for f in a b w; do $HEFT hash --quiet $f.npz; done | grep model | sort | uniq | wc -l
$HEFT doctor -o d.safetensors a.npz; echo "doctor $?"
