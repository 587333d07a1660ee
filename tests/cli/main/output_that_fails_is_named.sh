# An output that cannot be written is named, whichever command writes it; the input is not blamed.
$PYTHON - <<'P'
from samples import write_safetensors
write_safetensors("in.safetensors", {n: ("I8", [9000], bytes(9000)) for n in "abc"})
P
before=$(cksum in.safetensors)
limited() { (ulimit -f 10; "$@" 2> err); echo "$? $(cat err)"; }
limited $HEFT convert in.safetensors out.npz
limited $HEFT convert in.safetensors out.zt
limited $HEFT merge in.safetensors small.safetensors out.mag
limited $HEFT split --count 3 in.safetensors shards
limited $HEFT split --count 3 --to ztensor in.safetensors shards
limited $HEFT split --count 3 --to gguf in.safetensors shards
limited $HEFT edit --set "k=$(printf %09000d 0)" in.safetensors
(ulimit -f 10; $HEFT convert --to npz in.safetensors - > out 2> err); echo "$? $(cat err)"
(ulimit -f 10; $HEFT cat in.safetensors a > out 2> err); echo "$? $(cat err)"
$HEFT merge --to npz in.safetensors /dev/full; echo $?
text=$(ulimit -f 0; $HEFT verify --share 1/1 -o record in.safetensors 2>&1); echo "$? $text"
ls -d out.* shards record* 2> /dev/null
test "$before" = "$(cksum in.safetensors)" && echo the input is as it was
