# The file is on disk before it has its name, and the name before the command ends; --no-sync waits for nothing.
command -v strace > /dev/null || { echo there is no strace here; exit 77; }
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
strace -f -o /dev/null true 2> /dev/null || { echo strace is not allowed here; exit 77; }
calls() {
    strace -f -o trace -e trace=fsync,linkat,renameat,renameat2 "$HEFT" "$@"
    sed -n 's/^[0-9]* *\([a-z0-9]*\)(.*= 0$/\1/p' trace | tr '\n' ' '
    echo
}
calls convert small.safetensors new.mag
calls convert --force small.safetensors new.mag
calls convert --no-sync small.safetensors scratch.mag
calls convert --no-sync --force small.safetensors scratch.mag
calls merge small.safetensors merged.mag
calls merge --no-sync --force small.safetensors merged.mag
calls split --count 1 small.safetensors shards
calls split --no-sync --count 1 small.safetensors scratch
for when in 1 2; do # the file, the directory
    strace -f -o /dev/null -e inject=fsync:error=EIO:when=$when "$HEFT" convert small.safetensors lost$when.mag
    echo $? lost*.mag
done
