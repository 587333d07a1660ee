$PYTHON $CASES/terminal.py $HEFT cat two.safetensors ids
echo $?
$PYTHON $CASES/terminal.py $HEFT cat --force small.safetensors h | od -An -c | head -1
