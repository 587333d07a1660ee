# Files in folders that a C library may not enter are not passed by in silence.
$PYTHON -c '
import os
deep = "deep" + "/d" * 255
os.makedirs(deep + "/d")
open(deep + "/model.safetensors", "wb").write(open("two.safetensors", "rb").read())'
$HEFT scan deep
echo "exit $?"
rmdir deep/$($PYTHON -c 'print("/".join(["d"] * 256))')
$HEFT scan deep
echo "exit $?"
rm -r deep
