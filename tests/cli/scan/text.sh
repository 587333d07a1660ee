# What people read about pickles in archives; a missing file has an error in JSON.
$PYTHON -c '
import zipfile
with zipfile.ZipFile("m.pt", "w") as z:
    z.writestr("m/data.pkl", b"cposix\nsystem\n(S\x27true\x27\ntR.")
    z.writestr("m/new\nline.pkl", b"cos\nsystem\n.")'
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try scan m.pt
try scan --json missing
