# What heft does not know is left out by name, and the rest is converted: a storage of an unknown
# class, a storage without a tensor, tensors and numbers in forms that are not supported. --strict
# makes each an error. Damage is no unknown value: the file is refused.
$PYTHON -c '
from samples import f32, pickled_text, torch_members, zip_stream
more = pickled_text("bare") + b"(" + pickled_text("storage") + b"ctorch\nFloatStorage\n" + \
    pickled_text("0") + pickled_text("cpu") + b"K\x02tQ"
more += pickled_text("turn") + b"cbuiltins\ncomplex\n(K\x01K\x02tR"
more += pickled_text("call") + b"cown\nmake\n(" + torch_members(
    {"w": ("FloatStorage", 2, f32(1, 2))})[0][1][10:-2] + b"tR"
members = torch_members({"w": ("FloatStorage", 2, f32(1, 2)), "u": ("FutureStorage", 3, b"abc"),
                         "last": ("FloatStorage", 1, f32(3))}, more)
constants = [("constants/0", f32(4, 5))]
data = zip_stream(members + constants)
open("unknown.pt", "wb").write(data)
at = data.index(b"abc")
open("damaged.pt", "wb").write(data[:at] + b"x" + data[at + 1:])
open("short.pt", "wb").write(zip_stream([(n, d[:-1] if n == "data/2" else d)
                                         for n, d in members]))'
$HEFT convert unknown.pt out.safetensors; echo $?
$HEFT ls out.safetensors
$HEFT convert --strict unknown.pt strict.safetensors; echo $?
$HEFT ls strict.safetensors; echo $?
$HEFT verify unknown.pt
$HEFT hash unknown.pt; echo $?
$HEFT verify damaged.pt | tail -2; echo $?
$HEFT convert damaged.pt damaged.safetensors; echo $?
$HEFT convert short.pt short.safetensors; echo $?
