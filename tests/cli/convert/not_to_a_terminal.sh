# Bytes of a model would confuse a terminal.
$PYTHON $CASES/terminal.py $HEFT convert --to mag small.safetensors -
echo $?
$PYTHON $CASES/terminal.py $HEFT convert --force --to mag small.safetensors - | head -c 4
$PYTHON $CASES/terminal.py $HEFT convert small.safetensors small.mag
echo $?
