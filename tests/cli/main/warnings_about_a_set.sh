$HEFT convert --rename 's,^w$,../w,' small.safetensors odd.safetensors
$HEFT split -q --count 2 odd.safetensors parts
$HEFT ls parts 2>&1 >/dev/null
$HEFT ls parts/*.index.json 2>&1 >/dev/null
$HEFT merge parts/* whole.safetensors
$HEFT diff -q whole.safetensors odd.safetensors && echo equal
