$PYTHON $CASES/terminal.py $HEFT ls small.safetensors
NO_COLOR=1 $PYTHON $CASES/terminal.py $HEFT ls small.safetensors
$PYTHON $CASES/terminal.py $HEFT ls --color=never small.safetensors
$HEFT ls --color=always small.safetensors | sed 's/\x1b/^[/g'
