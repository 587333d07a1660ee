$HEFT convert bert one.weights
cat > wrong.json <<'END'
{"name": "wrong", "metadata": {"model_name": "other", "hidden_size": 5, "absent": true}, "optional_metadata": ["rare"],
 "vocabulary": {"tokens": 9, "special": {"pad": 1, "mask": "nothing"}},
 "tensors": [
  {"name": "encoder.layer.{0..1}.intermediate.dense.weight", "shape": [4, 8]},
  {"name": "embeddings.LayerNorm.{gamma|weight}", "shape": [4, 1], "dtype": ["f16"]},
  {"name": "embeddings.position_embeddings.weight", "shape": ["6", "missing"]},
  {"name": "open.{0..1", "shape": [1]},
  {"name": "none.{5..2}.weight"}, {"name": "pooler.{a|b}.weight"}]}
END
$HEFT verify -p wrong.json one.weights
echo "exit $?"
$HEFT verify --json -p wrong.json one.weights | grep -c profile/
$HEFT convert --format-version simple one.weights simple.weights
$HEFT verify -p all-MiniLM-L6-v2 simple.weights | tail -1
