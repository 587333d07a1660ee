echo '{"kind": "gpt", "config": {"n": 1}}' > c.json; echo '{' > broken.json
$HEFT convert --config c.json small.safetensors a.gptrs && $HEFT cat a.gptrs --part config
$HEFT convert --config broken.json small.safetensors b.gptrs; echo $?; ls b.gptrs 2> /dev/null
$HEFT convert --config missing.json small.safetensors b.gptrs; echo $?
$HEFT convert --config . small.safetensors b.gptrs; echo $?
