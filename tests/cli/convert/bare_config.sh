echo '{"vocab_size": 8, "context_length": 4, "embed_dim": 2, "num_layers": 1, "num_heads": 1, "mlp_ratio": 4, "dropout": 0.5}' > bare.json
$HEFT convert --config bare.json small.safetensors a.gptrs; echo "exit $?"
$HEFT cat a.gptrs --part config; echo
$HEFT convert --strict --config bare.json small.safetensors b.gptrs; echo "exit $?"
test -e b.gptrs || echo none
