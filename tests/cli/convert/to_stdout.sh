$HEFT convert --to mag small.safetensors - > a.mag && $HEFT convert small.safetensors b.mag && cmp a.mag b.mag && echo same
$PYTHON $CASES/terminal.py $HEFT convert --to mag small.safetensors -; echo $?
