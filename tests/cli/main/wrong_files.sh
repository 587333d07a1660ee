try() { $HEFT "$@" > out 2> err; echo "$? $(cat err)"; [ -s out ] && cat out; }
for f in missing.safetensors . page.safetensors pointer.safetensors empty.safetensors \
    cut.safetensors header.safetensors two.safetensors/x; do
    try ls "$f"
done
