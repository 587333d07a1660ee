$HEFT convert --rename 's,^w$,../w,' small.safetensors odd.mag
$HEFT convert -q odd.mag odd.zt
$HEFT convert small.safetensors m.zt
again() { rm -rf out.mag shards; "$@" 2>&1 >/dev/null | sed "s/^/$2: /"; }
for quiet in '' -q; do
    again $HEFT ls $quiet odd.mag
    again $HEFT ls $quiet --json odd.mag
    again $HEFT info $quiet odd.mag
    again $HEFT cat $quiet odd.mag h
    again $HEFT show $quiet odd.mag h
    again $HEFT convert $quiet odd.mag out.mag
    again $HEFT split $quiet --to ztensor --count 2 odd.mag shards
    again $HEFT merge $quiet odd.mag out.mag
    again $HEFT diff $quiet odd.mag small.safetensors
    again $HEFT hash $quiet odd.mag
    again $HEFT ids $quiet odd.mag
    again $HEFT stats $quiet odd.mag
    again $HEFT append $quiet --rename 's,^,a.,' --dry-run m.zt odd.mag
    again $HEFT append $quiet --rename 's,^,a.,' --dry-run odd.zt small.safetensors
    again $HEFT edit $quiet --rename h=k --dry-run odd.mag
done
$HEFT ls --json odd.mag 2>/dev/null | $PYTHON -m json.tool >/dev/null && echo "stdout is JSON"
$HEFT verify odd.mag
