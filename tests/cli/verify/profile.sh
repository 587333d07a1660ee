$HEFT convert bert one.weights
cat > tiny.json <<'END'
{"name": "tiny", "sizes": {"inner": 8}, "complete_in": ["embd 1.*"], "prefixes": ["bert."],
 "metadata": {"model_name": "bert", "hidden_size": 4, "num_layers": true},
 "optional_metadata": ["created_at"],
 "vocabulary": {"tokens": "vocab_size", "special": {"pad": 0, "unk": 4}},
 "tensors": [
  {"name": "embeddings.{word|token}_embeddings.weight", "shape": ["vocab_size", "hidden_size"]},
  {"name": "encoder.layer.{0..num_layers-1}.intermediate.dense.weight", "shape": ["2*hidden_size", 4], "dtype": ["f16", "f32"]},
  {"name": "pooler.weight", "shape": [1], "optional": true}]}
END
$HEFT verify --profile ./tiny.json one.weights
HEFT_PROFILES=. $HEFT verify --profile tiny one.weights
sed -i 's/"vocab_size", "hidden_size"/8, 4/; s/2[*]hidden_size/inner/; s/num_layers-1/0/; s/"vocab_size"/8/' tiny.json
$HEFT verify --profile tiny.json bert/model.safetensors
