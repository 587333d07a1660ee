$HEFT cat small.safetensors --id 7a61e32d973b81c6075dbebe2015f2f2 | od -An -tf4
$HEFT cat small.safetensors --id 0x7A61E32D973B81C6075DBEBE2015F2F2 --npy | wc -c
$PYTHON -c '
from samples import write_safetensors, f32
write_safetensors("burn.safetensors", {n: ("F32", [1], f32(i)) for i, n in enumerate("abc")},
                  {"heft.burn.param_id/a": "4294967303", "heft.burn.param_id/b": "9", "heft.burn.param_id/c": "9"})'
$HEFT convert burn.safetensors burn.bpk
text=$($PYTHON -c '
import base64
print(base64.b32hexencode((4294967303).to_bytes(8, "little")).decode().rstrip("=").lower())')
for id in 4294967303 0x100000007 "$text"; do $HEFT cat burn.bpk --id $id | od -An -tf4; done
for id in 9 10 7a61e32d973b81c6075dbebe2015f2f2 nonsense -1 18446744073709551616 ''; do
    $HEFT cat burn.bpk --id "$id"
    echo "exit $?"
done
$HEFT cat burn.bpk a --id 9
echo "exit $?"
