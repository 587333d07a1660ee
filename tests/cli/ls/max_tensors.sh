# The limit on tensors, which every command that opens a file can move.
try() { $HEFT "$@"; echo $?; }
try ls --max-tensors 1 small.safetensors
try ls --max-tensors 2 small.safetensors
$HEFT convert --cast f32 small.safetensors m.mag
$HEFT convert --keep w --rename 's/w/x/' small.safetensors one.safetensors
for command in "ls" "info" "verify" "hash" "stats" "ids" "show --max-tensors 2" "diff small.safetensors" "cat --max-tensors 2" \
    "convert --to npz -n" "split --count 2 --to safetensors" "merge small.safetensors" "edit --set a=1" "append"; do
    case $command in
    show*|cat*) set -- m.mag w ;;
    convert*|merge*|split*) set -- m.mag out ;;
    append*) set -- m.mag one.safetensors ;;
    *) set -- m.mag ;;
    esac
    $HEFT $command --max-tensors 1 "$@" > told 2>&1
    echo "$command: $? $(grep -c 'max-tensors N raises this limit' told)"
done
$HEFT convert --rename 's/^/x./' small.safetensors more.safetensors
try merge --max-tensors 3 small.safetensors more.safetensors all.safetensors
try merge --max-tensors 4 small.safetensors more.safetensors all.safetensors
for bad in 0 -1 4294967296 1k "" x; do
    try ls --max-tensors "$bad" small.safetensors
done
echo "-- more than the library takes by itself: the header says 2^24 + 1, of which the records are not there"
printf 'MAG!\001\0\0\0\0\0\0\0\001\0\0\001\0\0\0\0\0\0\0\0' > many.mag
$PYTHON -c 'import os; os.truncate("many.mag", 33 * (2**24 + 2))'
try ls many.mag
$HEFT ls --max-tensors 16777217 many.mag 2>&1 | grep -c "limit"
$HEFT ls --max-tensors 4294967295 many.mag 2>&1 | grep -c "limit"
