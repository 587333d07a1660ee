for to in burnpack:0.20 burnpack:0.21 embd:1.0 embd:simple gptrs-archive:2 gptrs-checkpoint:2 mag:1 \
          mag:100 mag:snapshot ztensor:1.0 ztensor:1.1 ztensor:1.2 ztensor:2; do
    $HEFT convert --force --to ${to%:*} --format-version ${to#*:} --cast '*=f32' two.safetensors m 2> /dev/null
    $HEFT hash --json m | grep -o '"digest":"[^"]*"' | sort > before
    $HEFT edit --rename "$($HEFT ls m | awk 'NR == 2 { print $1 }')=another_name" m || echo "$to: $?"
    $HEFT hash --json m | grep -o '"digest":"[^"]*"' | sort | cmp - before
    $HEFT verify m | sed "s/^m/$to/"
    $HEFT ls m | grep -c another_name
done
