echo '{"kind": "gpt", "config": {"n": 1}}' > config.json
$HEFT convert --config config.json small.safetensors m.gptrs && $HEFT cat m.gptrs --part config
