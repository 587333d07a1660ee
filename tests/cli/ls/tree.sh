$HEFT ls --tree bert
$HEFT ls --tree --depth 2 --bytes --totals bert
$HEFT ls --tree --raw --depth 3 bert '*.{weight,none}'
# Numbers are compared as numbers; a module and a tensor may have the same name; components may be empty.
$PYTHON -c '
from samples import f32, write_safetensors
names = ["h.%d.w" % i for i in (10, 9, 2, 1)] + ["h", "h.01.w", "a/b/c", "a.b", ".", "x..y", "", "h-1.w"]
write_safetensors("odd.safetensors", {n: ("F32", [1], f32(1)) for n in names})
write_safetensors("deep.safetensors", {"a." * 5000 + "b": ("F32", [1], f32(1)), "a." * 5000 + "c": ("F32", [1], f32(1))})'
$HEFT ls --tree odd.safetensors
$HEFT ls --tree deep.safetensors | wc -l
$HEFT ls --tree none.safetensors
