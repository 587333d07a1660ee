# transformers loads a safetensors file without metadata, or with a known "format".
head() { $PYTHON -c "
import json, struct, sys
f = open(sys.argv[1], 'rb')
print(json.loads(f.read(struct.unpack('<Q', f.read(8))[0])).get('__metadata__'))" "$1"; }
$HEFT convert -v two.safetensors a.safetensors && head a.safetensors
$HEFT convert -v --no-format-key two.safetensors b.safetensors && head b.safetensors
$HEFT convert --set format=tf two.safetensors c.safetensors && head c.safetensors
$HEFT convert small.safetensors d.safetensors && $HEFT convert --no-format-key d.safetensors h.safetensors &&
    cmp d.safetensors h.safetensors && head d.safetensors
$HEFT convert two.safetensors e.zt && $HEFT convert e.zt f.safetensors && head f.safetensors
$HEFT split --count 2 two.safetensors shards && head shards/model-00001-of-00002.safetensors
$HEFT merge --no-format-key two.safetensors g.safetensors && head g.safetensors
echo "== edit"
$HEFT edit --set license=MIT d.safetensors && head d.safetensors
$HEFT edit --set format=pt d.safetensors && head d.safetensors
$HEFT edit --unset format d.safetensors && head d.safetensors
$HEFT edit --set more=1 d.safetensors && head d.safetensors
