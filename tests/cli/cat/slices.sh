$HEFT cat two.safetensors 'ids[-1:0:-2]' | od -An -td8
$HEFT show two.safetensors 'layer.weight[::-1,1:]'
$HEFT show two.safetensors 'layer.weight[1]' --cast i32
$HEFT show two.safetensors 'layer.weight[:,3:]'
$HEFT show large.safetensors 'grid[:2]'
$HEFT show --cast f99 two.safetensors ids
echo "exit $?"
$HEFT cat --cast c64 two.safetensors ids
echo "exit $?"
$HEFT cat --part data two.safetensors 'ids[0]'
echo "exit $?"
# A name with brackets counts before a slice.
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("b.safetensors", {"w[0]": ("F32", [1], f32(7)), "w": ("F32", [2], f32(1, 2))})'
$HEFT show b.safetensors 'w[0]'
$HEFT show b.safetensors 'w[1]'
# A slice reads only the needed bytes: the limit is far below the size of the tensor.
$HEFT cat --max-bytes 100 large.safetensors 'line[500:504]' | od -An -td8
# Elements smaller than a byte need a cast.
$HEFT convert --format-version 2 --cast '*=f4_e2m1' large.safetensors packed.zt 2>/dev/null
$HEFT cat packed.zt 'grid[0,1:3]'
echo "exit $?"
$HEFT show packed.zt 'grid[0,1:9:2]'
$HEFT cat --npy --cast bf16 two.safetensors ids
echo "exit $?"
# A tensor that is read whole is compared with its digest.
$HEFT convert --digest crc32c small.safetensors small.zt
$PYTHON -c '
b = bytearray(open("small.zt", "rb").read())
b[64] ^= 1
open("bad.zt", "wb").write(b)'
$HEFT cat --cast f64 bad.zt w
echo "exit $?"
$HEFT show --no-verify --cast f64 bad.zt w
