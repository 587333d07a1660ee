# Metadata are compared, too: two files of one format that differ only in a chat template differ.
# Between formats only values of the same key count, since none stores all that another can.
$PYTHON -c '
from samples import f32, write_safetensors
w = {"w": ("F32", [2], f32(1, 2))}
template = "{% for m in messages %}" * 5
write_safetensors("a.safetensors", w, {"format": "pt", "template": template + "old", "n": "3", "x": "1"})
write_safetensors("b.safetensors", w, {"template": template + "new", "n": "3", "y": "2"})
write_safetensors("many.safetensors", w, {"k%02d" % i: "v" for i in range(25)})'
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try diff a.safetensors b.safetensors
try diff --json a.safetensors b.safetensors
try diff --ignore-metadata a.safetensors b.safetensors
try diff a.safetensors b.safetensors w
try diff a.safetensors many.safetensors
try diff -q -v a.safetensors many.safetensors
$HEFT convert -q a.safetensors a.gguf
$HEFT convert -q --set n:u32=3 b.safetensors typed.gguf
try diff a.safetensors a.gguf
try diff b.safetensors typed.gguf
try diff a.safetensors typed.gguf
