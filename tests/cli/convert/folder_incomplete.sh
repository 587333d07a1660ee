rm bert/config.json bert/vocab.txt
$HEFT convert bert out.weights && $HEFT info out.weights
$HEFT convert --strict bert strict.weights
echo "exit $?"
rm bert/model.safetensors
$HEFT convert bert none.weights
echo "exit $?"
ls *.weights
