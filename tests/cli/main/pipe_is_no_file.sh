mkfifo pipe.safetensors
$HEFT ls pipe.safetensors
