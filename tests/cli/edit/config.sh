$HEFT convert --cast '*=f32' two.safetensors m.gptrs 2> /dev/null
echo '{"kind": "gpt", "config": {"n": 1}}' > short.json
$PYTHON -c 'print("{\"kind\": \"gpt\", \"config\": {\"text\": \"" + "x" * 500 + "\"}}")' > long.json
echo '{"vocab_size": 8, "context_length": 4, "embed_dim": 2, "num_layers": 1, "num_heads": 1, "mlp_ratio": 4, "dropout": 0.5}' > bare.json
$HEFT hash --json m.gptrs | grep -o '"digest":"[^"]*"' > before
try() { $HEFT edit "$@"; echo "exit $?"; }
for config in short long short; do
    try -v --config $config.json m.gptrs
    $HEFT cat m.gptrs --part config | cmp - $config.json
done
try --config bare.json m.gptrs
$HEFT cat m.gptrs --part config; echo
$HEFT verify m.gptrs && $HEFT hash --json m.gptrs | grep -o '"digest":"[^"]*"' | cmp - before
cp m.gptrs kept
echo '{"kind": "gpt"' > broken.json; echo '{"other": 1}' > other.json; : > empty.json
for config in broken other empty missing; do try --config $config.json m.gptrs; done
try --config short.json two.safetensors
cmp m.gptrs kept
