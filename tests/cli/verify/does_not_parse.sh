for f in page pointer empty cut header; do $HEFT verify $f.safetensors; echo $?; done
