$HEFT convert --keep bf --keep f8 --rename "s/^bf\$/it's [a]*?/" types.safetensors odd.safetensors
$HEFT convert odd.safetensors odd.mag; echo $?
hint=$($HEFT convert odd.safetensors odd.mag 2>&1 | sed -n "s/.*(cast it: heft convert \(.*=f32'\)) .*/\1/p" | tr '\n' ' ')
eval "$HEFT convert --rename 's/it/IT/' $hint odd.safetensors odd.mag"
$HEFT ls odd.mag
$HEFT convert --rename 's/f8/renamed/' --drop 'it*' odd.safetensors other.mag
$HEFT convert --rename "s/f8/$(printf 'n%.0s' $(seq 120))/" --drop 'it*' odd.safetensors long.safetensors
$HEFT convert long.safetensors long.mag
