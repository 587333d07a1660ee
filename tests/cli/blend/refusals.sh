# each refusal names the tensor, and what decides; OUT does not appear
$PYTHON - <<'END'
import numpy as np
from arrays import save
w = np.arange(12, dtype=np.float32).reshape(3, 4)
n = np.arange(3)
save("a", w=w, n=n)
save("b", w=w + 1, n=n)
save("shape", w=w.reshape(4, 3), n=n)
save("rank", w=w.ravel(), n=n)
save("less", n=n)
save("more", w=w, n=n, x=w)
save("nan", w=w * np.float32("nan"), n=n)
save("large", w=np.minimum(w, 3) * np.float32(1e38), n=n)
save("half", w=w.astype(np.float16), n=n)
save("ints", w=w.astype(np.int8), n=n)
open("yaml", "w").write("merge_method: linear\nmodels:\n  - model: a\n  - model: b\n    weight: 1\n")
open("alias", "w").write("x: &x [1]\nmodels: *x\n")
open("two", "w").write("a: 1\n---\nb: 2\n")
open("bad", "w").write("models: [\n")
open("keyed", "w").write("? [a]\n: 1\n")
open("deep", "w").write("[" * 100)
open("other.json", "w").write('{"method": "linear", "models": [{"model": "a"}, {"model": "org/c"}]}')
open("json", "w").write('{"method": "linear", "models": [{"model": "a"}, {"model": "b"}], "density": 1}')
open("slices", "w").write("merge_method: linear\nslices:\n- sources: [{model: a, layer_range: [0, 2]}]\n- sources: []\n")
open("slice", "w").write("merge_method: linear\nslices:\n- sources: [{model: a, layer_range: [0, 2]}, {model: b, layer_range: [0, 2]}]\n")
open("layers", "w").write("merge_method: linear\nmodels: [{model: a, parameters: {weight: [1, 2]}}, {model: b}]\n")
END
try() { $HEFT blend "$@" out.safetensors; echo "exit $?"; }
try a b
try --method linear a shape
try --method linear a rank
try --method linear a less
try --method linear less a
try --method linear a more
try --method linear --missing base a more && $HEFT ls out.safetensors && rm out.safetensors
try --method linear --weight 1,-1 a b
try --method task_arithmetic a b
try --method task_arithmetic --base a a
try --method slerp --base a b half
try --method linear a nan
try --method linear --weight 10,10 --normalize false a large
try --method linear --dtype f16 a large
try --method linear a ints
try --method magic a b
try --method linear --weight 1,2,3 a b
try --method linear --weight x a b
try --method ties --base a --density 2 b
try --method linear --weight 1.23456789012345678901 a b
try --method linear --tied w a b
try --method linear --seed x a b
try --method linear --base a --seed -1 b
try --method linear a missing
try --settings yaml a b
try --settings alias a b
try --settings two a b
try --settings bad a b
try --settings keyed a b
try --settings deep a b
try --settings other.json a b
try --settings json a b
try --settings slices a b
try --settings slice a b
try --settings layers a b
try --settings layers --method linear a b
try --settings missing a b
printf 'method: linear\nmethod: ties\nmodels: [{model: a}]\n' > twice
try --settings twice a b
$HEFT blend --method linear a b - | od -An -c
$HEFT blend --json --to gguf --method linear a b - | od -An -c
ls out* 2> /dev/null
cp a out.safetensors
try --method linear a b
cmp a out.safetensors
$HEFT blend --method linear --to safetensors --force a b a; echo "exit $?"
try --method linear --weight 1, a b
$HEFT blend --method linear --t 0.3 --density 0.5 a b unused.safetensors; echo "exit $?"
$HEFT blend --strict --method slerp --weight 0.5 --base a b strict.safetensors; echo "exit $?"
ls strict* 2> /dev/null
