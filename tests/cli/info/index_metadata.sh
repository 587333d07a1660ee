# Of a set of safetensors, a value in the index counts before one in a shard.
$HEFT convert --set a=shard --set b=shard two.safetensors m.safetensors
$HEFT split --count 2 m.safetensors set
$PYTHON -c "
import json
path = 'set/model.safetensors.index.json'
index = json.load(open(path))
index['metadata']['a'] = 'index'
json.dump(index, open(path, 'w'))"
$HEFT info --quiet --json set | $PYTHON -c 'import json, sys; m = json.load(sys.stdin)["metadata"]; print(m["a"], m["b"])'
