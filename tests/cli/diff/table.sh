# The table: patterns, order, a limit, modules, rows for programs, and colours.
$PYTHON -c '
from samples import f32, write_safetensors
def model(scale):
    return {"layers.%d.%s" % (i, n): ("F32", [2], f32(i + 1, 2 + scale * (i % 3)))
            for i in range(4) for n in ("weight", "bias")}
a, b = model(0), model(1)
a["old.weight"] = ("F32", [1], f32(5))
b["new.weight"] = ("F32", [1], f32(6))
write_safetensors("a.safetensors", a)
write_safetensors("b.safetensors", b)'
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try diff a.safetensors b.safetensors
try diff a.safetensors b.safetensors '*.bias' 'none*'
try diff --sort max-abs --limit 2 a.safetensors b.safetensors
try diff --sort name a.safetensors b.safetensors
try diff --tree a.safetensors b.safetensors
try diff --tree --depth 1 a.safetensors b.safetensors
try diff --raw a.safetensors b.safetensors '*weight'
try diff --color always a.safetensors b.safetensors '{old,new}*'
try diff --sort size a.safetensors b.safetensors
try diff --tree --limit 3 a.safetensors b.safetensors
try diff --depth 3 a.safetensors b.safetensors
try diff a.safetensors b.safetensors 'layers.0.*'
