# "-" is standard input, by a pipe, which is copied, or by a file, which is read in place.
cat small.safetensors | $HEFT ls -
$HEFT ls - < small.safetensors | tail -1
cat small.safetensors | $HEFT verify --json -
cat small.safetensors | $HEFT diff - small.safetensors
cat small.safetensors | $HEFT convert - out.mag --quiet && $HEFT verify out.mag
cat small.safetensors | $HEFT convert --to mag - - | cmp - out.mag
cat small.safetensors | $HEFT verify small.safetensors -
echo text | $HEFT info -
$HEFT ls - < /dev/null
cat small.safetensors | $HEFT diff - -
cat small.safetensors | $HEFT sbom - | grep -o '"name": "-".*SHA-256'
cat small.safetensors | $HEFT append - small.safetensors; cat small.safetensors | $HEFT edit - --set a=1
cat small.safetensors | TMPDIR=/nowhere $HEFT ls -
cat small.safetensors | TMPDIR=$($PYTHON -c "print('/' + 'd' * 5000)") $HEFT ls -
(ulimit -f 1; trap '' XFSZ; cat large.safetensors | TMPDIR=. $HEFT ls -)
cp two.safetensors more.safetensors; cat small.safetensors | $HEFT append --no-sync more.safetensors - && $HEFT ls more.safetensors
$PYTHON $CASES/terminal.py $HEFT ls -
