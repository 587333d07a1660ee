# A text that has fewer bytes than when it was opened: the read ends early.
command -v strace > /dev/null || { echo "strace is not here"; exit 77; }
strace -o /dev/null true 2> /dev/null ||
    { echo "strace may not trace here"; exit 77; }
# what sanitizers do at the end of a program, a traced one cannot
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
cut() { strace -f -o /dev/null -P "$PWD/bert/vocab.txt" -e trace=pread64 -e inject=pread64:retval=0 "$@"; echo "exit $?"; }
cut $HEFT convert bert out.weights
cut $HEFT convert --vocab bert/vocab.txt bert/model.safetensors out.weights
test ! -e out.weights
