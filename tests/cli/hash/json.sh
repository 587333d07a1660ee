$HEFT hash --json small.safetensors
# A model with content that Heft cannot unpack has no digest; its tensors have theirs.
$PYTHON - <<'P'
import struct, zipfile
h = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
with zipfile.ZipFile("a.npz", "w") as z:
    z.writestr("w.npy", b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h + bytes(4))
    z.writestr("more.npy", bytes(90), zipfile.ZIP_BZIP2)
P
$HEFT hash --json a.npz; echo "= $?"
