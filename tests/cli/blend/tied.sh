# tensors that share their bytes in the base stay equal, or are an error that names them
$PYTHON - <<'END'
import zipfile
from samples import f32
def text(s):
    return b"X" + len(s).to_bytes(4, "little") + s.encode()
def save(path, **storages):
    """Write a PyTorch file; each name has the number of a storage of 6 numbers."""
    body = b""
    for name, number in storages.items():
        storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(str(number)) + text("cpu") + b"K\x06tQ"
        body += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0(K\x02K\x03t(K\x03K\x01t\x89NtR"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("m/data.pkl", b"\x80\x02}(" + body + b"u.")
        for number in sorted(set(storages.values())):
            z.writestr(f"m/data/{number}", f32(*(v * (number + 1) for v in range(6))))
        z.writestr("m/version", "3\n")
save("a.pt", embed=0, head=0, norm=1)
save("b.pt", embed=2, head=2, norm=1)
save("apart.pt", embed=2, head=3, norm=1)
END
try() { $HEFT blend -f "$@" out.safetensors; echo "exit $?"; }
try --method linear a.pt b.pt
$HEFT cat out.safetensors embed > embed; $HEFT cat out.safetensors head | cmp - embed && od -An -tf4 embed
try --method dare_linear --density 0.5 --base a.pt b.pt
$HEFT cat out.safetensors embed > embed; $HEFT cat out.safetensors head | cmp - embed && od -An -tf4 embed
try --method linear a.pt apart.pt
try --method linear --weight head=2,1 --weight 1 a.pt b.pt
try --untie --method linear a.pt apart.pt
$HEFT cat out.safetensors head | od -An -tf4
