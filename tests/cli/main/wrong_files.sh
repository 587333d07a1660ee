try() { $HEFT "$@" > out 2> err; echo "$? $(cat err)"; [ -s out ] && cat out; }
for f in missing.safetensors . page.safetensors pointer.safetensors empty.safetensors \
    cut.safetensors header.safetensors two.safetensors/x; do
    try ls "$f"
done
for start in '<?xml version="1.0"?>' '\050\265\057\375zstd' '\3757zXZ' '\211HDF' 'PK\003\004' \
    '\177ELF' '\200\004pickle' '{"a": 1}' 'GIF89a'; do
    printf "$start" > other && try ls other
done
