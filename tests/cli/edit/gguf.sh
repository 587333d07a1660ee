$HEFT convert --cast f32 --set general.architecture=test --set count=3 small.safetensors m.gguf
$HEFT hash m.gguf > before
$HEFT edit --set count=4 --set 'general.name=a model' --rename w=token_embd.weight m.gguf
$HEFT info --json m.gguf | grep -o '"metadata": {[^}]*}'
$HEFT ls m.gguf
$HEFT verify m.gguf
$HEFT edit --unset general.name --unset count --rename token_embd.weight=w m.gguf
$HEFT hash m.gguf | cmp - before && echo same
