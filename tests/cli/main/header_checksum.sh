$HEFT convert small.safetensors m.mag
$PYTHON -c '
b = bytearray(open("m.mag", "rb").read()); b[8] ^= 1; open("m.mag", "wb").write(b)'
$HEFT convert small.safetensors m.zt
status() { "$@" >/dev/null 2>&1; echo "$2: $?"; }
for option in '' --no-verify; do
    rm -rf out.mag shards
    status $HEFT ls $option m.mag
    status $HEFT info $option m.mag
    status $HEFT cat $option m.mag h
    status $HEFT show $option m.mag h
    status $HEFT convert $option m.mag out.mag
    rm -f out.mag
    status $HEFT split $option --to safetensors --count 2 m.mag shards
    status $HEFT merge $option m.mag out.mag
    status $HEFT append $option --rename 's,^,a.,' --dry-run m.zt m.mag
    status $HEFT diff $option m.mag small.safetensors
    status $HEFT hash $option m.mag
    status $HEFT ids $option m.mag
    status $HEFT stats $option m.mag
done
status $HEFT edit --rename h=k m.mag
$HEFT ls m.mag
$HEFT verify m.mag
