$PYTHON -c '
from samples import f32, i64, write_safetensors
write_safetensors("s.safetensors", {"w10": ("F32", [3], f32(1, 2, 3)), "w9": ("I64", [1], i64(1)),
    "w1": ("F32", [3], f32(4, 5, 6)), "a": ("BOOL", [1], b"\1")})'
for key in name size offset dtype; do
    echo "$key: $($HEFT ls --raw --sort $key s.safetensors | cut -f1 | tr '\n' ' ')"
done
$HEFT ls --sort size --limit 1 s.safetensors
$HEFT ls --json --sort name --limit 2 s.safetensors | grep -o '"name": "[^"]*"'
$HEFT ls --sort date s.safetensors
echo "exit $?"
echo "chosen: $($HEFT ls --raw --sort name s.safetensors 'w*' | cut -f1 | tr '\n' ' ')"
