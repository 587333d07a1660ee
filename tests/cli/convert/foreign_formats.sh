$HEFT convert --to tflite small.safetensors a; echo $?
$HEFT convert small.safetensors a.MLMODEL; echo $?
$HEFT convert --to llamafile small.safetensors a; echo $?
$HEFT split -c 2 --to gptq small.safetensors a; echo $?
