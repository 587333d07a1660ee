# All shards are open at once: the limit on open files is raised as far as the system allows.
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("m.safetensors", {"w%02d" % i: ("F32", [1], f32(i)) for i in range(40)})'
(ulimit -Sn 24 && $HEFT split --no-sync --count 40 m.safetensors out); echo "exit $?"
ls out | wc -l | tr -d ' '
$HEFT diff m.safetensors out
