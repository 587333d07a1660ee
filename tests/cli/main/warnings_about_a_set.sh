$HEFT convert --rename 's,^w$,../w,' small.safetensors odd.safetensors
$HEFT split -q --count 2 odd.safetensors parts
$HEFT ls parts 2>&1 >/dev/null
$HEFT ls parts/*.index.json 2>&1 >/dev/null
$HEFT merge parts/* whole.safetensors
$HEFT diff -q whole.safetensors odd.safetensors && echo equal
# The place of a message is an offset in a shard, which is named.
$PYTHON -c '
import struct
data = open("parts/model-00002-of-00002.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0] + 8
open("parts/model-00002-of-00002.safetensors", "wb").write(
    struct.pack("<Q", size) + b" " * 8 + data[8:])'
$HEFT info -v parts 2>&1 >/dev/null
$HEFT info -v --messages=json parts 2>&1 >/dev/null | grep leading
