# Each tensor keeps how it is stored; unknown to the command, it goes by what the file has.
stored() { $HEFT ls --json "$1" | $PYTHON -c "
import json, sys
for t in json.load(sys.stdin)['tensors']:
    p = t['parts'][0]
    print(t['name'], p['encoding'], (p['digest'] or '-')[:7], p['offset'] % 4096 == 0)"; }
for v in 1.0 1.2 2; do
    $HEFT convert --force --compress zstd --format-version $v --keep grid large.safetensors m.zt
    $HEFT append --digest sha256 --drop grid m.zt large.safetensors
    $HEFT append --align 4096 m.zt small.safetensors
    $HEFT append --compress zstd:9 --rename 's/^/two./' m.zt large.safetensors
    stored m.zt
    $HEFT verify --json m.zt | grep -o '"ok": *[a-z]*'
    $HEFT edit --set k=v m.zt && $HEFT diff --atol 0 m.zt m.zt
done
