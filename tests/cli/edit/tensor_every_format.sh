# numpy judges the new values where it reads the format; the others are read by heft.
$PYTHON - <<'END'
import json, struct
import numpy as np
a = (np.arange(700, dtype=np.float32) / 7).reshape(100, 7)
z = np.arange(12, dtype=np.float32)
head = json.dumps({"w": {"dtype": "F32", "shape": [100, 7], "data_offsets": [0, 2800]},
                   "z": {"dtype": "F32", "shape": [12], "data_offsets": [2800, 2848]}}).encode()
head += b" " * (-len(head) % 8)
open("src.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + a.tobytes() + z.tobytes())
np.save("w.npy", -a * 3)
(-a * 3).tofile("w.raw")
END
for to in safetensors gguf npz burnpack:0.20 burnpack:0.21 embd:1.0 embd:simple gptrs-archive:2 gptrs-checkpoint:2 \
          mag:1 mag:100 mag:snapshot ztensor:1.0 ztensor:1.1 ztensor:1.2 ztensor:2 flax; do
    version=; [ ${to#*:} = $to ] || version="--format-version ${to#*:}"
    $HEFT convert --force --to ${to%:*} $version src.safetensors m 2> /dev/null
    w=$($HEFT ls m | awk '/100,7/ { print $1 }')
    z=$($HEFT ls m | awk '/\[12\]/ { print $1 }')
    $HEFT cat m $z > other
    $HEFT edit -v --tensor $w=w.npy m 2>&1 | grep -v note: | sed "s/^heft: m/$to/"
    $HEFT cat m $w | cmp - w.raw
    $HEFT cat m $z | cmp - other
    $HEFT verify -q m | grep -v ': ok'
done
for digest in crc32c sha256; do
    $HEFT convert --force --to ztensor --format-version 1.2 --compress zstd --digest $digest src.safetensors m
    $HEFT edit --tensor w=w.npy m && $HEFT cat m w | cmp - w.raw
    $HEFT verify m
done
$PYTHON - <<'END'
import numpy as np
w = np.load("w.npy") + 1
np.savez_compressed("deflated.npz", w=w, z=np.arange(5))
np.savez("plain.npz", w=w, z=np.arange(5), f=np.asfortranarray(w))
data = bytearray(open("plain.npz", "rb").read())
data[300] ^= 1 # in w
open("damaged.npz", "wb").write(data)
END
for file in deflated plain damaged; do
    $HEFT edit -q --tensor w=w.npy $file.npz 2>&1 | grep -v note:
    $PYTHON -c "
import numpy as np
m = np.load('$file.npz')
print(m.files, np.array_equal(m['w'], np.load('w.npy')), m['z'])"
done
$HEFT edit -q --tensor f=w.npy plain.npz 2> /dev/null
$PYTHON -c "
import numpy as np
print(np.array_equal(np.load('plain.npz')['f'], np.load('w.npy')))"
