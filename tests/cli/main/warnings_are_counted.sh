$PYTHON - <<'END'
import sys, os
sys.path.insert(0, os.environ["CASES"])
import samples
samples.write_safetensors("many.safetensors", {"../%d" % i: ("U8", [1], b"x") for i in range(1000)})
samples.write_safetensors("five.safetensors", {"../%d" % i: ("U8", [1], b"x") for i in range(5)})
END
$HEFT ls many.safetensors 2>&1 >/dev/null
$HEFT ls five.safetensors 2>&1 >/dev/null
