for special in pad=8 pad=x pad who=1 pad=1,=2; do
    $HEFT convert --vocab bert/vocab.txt --special $special small.safetensors out.weights
    echo "exit $?"
done
$HEFT convert --special pad=0 small.safetensors out.weights
echo "exit $?"
