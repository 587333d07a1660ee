# Dense, the values take 2^63 bytes as f32, but 2^64 as f64.
$PYTHON - "$CASES" <<'END'
import sys
sys.path.insert(0, sys.argv[1] + "/../py")
from gen_ztensor1 import File
f = File("1.0")
coords, values = bytes(16), bytes(4)
tensors = {"w": f.tensor("f32", [2**31, 2**30], "sparse_coo",
                           {"coords": f.part("u64", coords), "values": f.part("f32", values)})}
open("large.zt", "wb").write(f.end(f.root(tensors)))
END
$HEFT ls large.zt
$HEFT convert --densify '*' --cast '*=f64' large.zt out.safetensors; echo $?
