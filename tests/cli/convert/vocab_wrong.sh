printf 'a\n\377\n' > latin.txt
echo '{"model": {"vocab": {"a": 0, "b": 5000}}}' > hole.json
echo '{"model": {"vocab": {"a": 0, "b": 0}}}' > twice.json
echo '{"model": {}}' > none.json
for vocab in latin.txt hole.json twice.json none.json missing.txt bert; do
    $HEFT convert --vocab $vocab small.safetensors out.weights
    echo "exit $?"
done
