# A name of at most 238 bytes leaves space for the suffix of the journal; a longer one takes a new file.
$HEFT convert --set k=1 --cast f32 small.safetensors small.mag
for n in 238 239; do
    name=$(printf "%0${n}d" 0)
    cp small.mag "$name"
    $HEFT edit --dry-run --set k=2 "$name" | sed 's/.*: //'
    before=$(stat -c %i "$name")
    $HEFT edit --set k=2 "$name" || exit
    [ "$(stat -c %i "$name")" = "$before" ] && echo "$n in place" || echo "$n in a new file"
done
