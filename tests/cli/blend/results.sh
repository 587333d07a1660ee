# what is blended and what is not is said; a dry run writes nothing
$PYTHON - <<'END'
import numpy as np
from arrays import save
w = np.arange(4, dtype=np.float32)
save("a", {"format": "pt", "from": "a"}, w=w, n=np.arange(3), e=np.zeros((0, 3), np.float32), s=np.float32(3).reshape(()))
save("b", {"format": "pt", "from": "b"}, w=-w, n=np.arange(3) + 1, e=np.zeros((0, 3), np.float32), s=np.float32(5).reshape(()))
save("nan", {"format": "pt", "from": "nan"}, w=w * np.float32("nan"), n=np.arange(3), e=np.zeros((0, 3), np.float32), s=np.float32(1).reshape(()))
open("c.yaml", "w").write("merge_method: ties\nbase_model: a\nmodels:\n- {model: b}\ntokenizer_source: union\n")
END
$HEFT blend -n --method linear a b out.safetensors
ls out* 2> /dev/null
$HEFT blend -v --method linear --weight 3,1 a b out.safetensors; echo "exit $?"
for t in w n s; do $HEFT cat out.safetensors $t | od -An -tf4; done
$HEFT info out.safetensors | grep -a from
$HEFT blend --json --method slerp --base a b o.gguf 2> /dev/null; $HEFT ls o.gguf
$HEFT blend -f --allow-nan --method linear a nan out.safetensors; echo "exit $?"
$HEFT cat out.safetensors w | od -An -tf4
$HEFT blend -f --settings c.yaml a b out.safetensors; echo "exit $?"
$HEFT blend -f --strict --settings c.yaml a b out.safetensors; echo "exit $?"
$HEFT blend --messages json -f --method linear a b out.safetensors
$HEFT blend -f --method linear a a out.safetensors; echo "exit $?"
$HEFT blend -f --method linear a out.safetensors; $HEFT diff a out.safetensors
[ -e /dev/full ] && $HEFT blend --to safetensors --method linear a b /dev/full; echo "exit $?"
# filters that no tensor has, and ties of no tensor, are reported; a later rule for all is not
$HEFT blend -f --method linear --weight wx=3 --weight 'z*=2,5' --weight w=1 --tied q=w a b out.safetensors; echo "exit $?"
$HEFT blend -f --strict --method linear --weight wx=3 a b strict.safetensors; echo "exit $?"
ls strict* 2> /dev/null
$HEFT blend -f --method linear --weight 1 --weight w=3 a b out.safetensors; echo "exit $?"
