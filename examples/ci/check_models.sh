#!/bin/sh
# check_models.sh [FILE...]: verify models, scan them for code, and bound their size.
#
# Without files every model below this folder is checked. MODEL_BUDGET is the most bytes of one file
# (2 GiB). The exit status is 1 if anything is wrong, 2 without Heft; a line on stderr says what.
set -u
command -v heft >/dev/null || { echo "check_models: there is no heft in the PATH" >&2; exit 2; }
budget=${MODEL_BUDGET:-2147483648}
failed=0
models=0

complain()
{
    echo "check_models: $*" >&2
    failed=1
}

check()
{
    models=$((models + 1))
    size=$(wc -c <"$1") || { complain "$1: cannot be read"; return; }
    [ "$size" -le "$budget" ] ||
        complain "$1: $size bytes are more than the budget of $budget (MODEL_BUDGET)"
    # Formats that may hold code are scanned before anything opens them.
    case $1 in
    *.pt | *.pth | *.pt2 | *.bin | *.ckpt | *.pkl | *.npy | *.npz | *.onnx | *.keras | *.h5)
        heft scan -- "$1"
        judge $? "$1" "would run code"
        ;;
    esac
    heft verify -- "$1"
    judge $? "$1" "is not intact"
}

# judge STATUS FILE WORDS: turn the exit status of Heft into a complaint: WORDS if it found
# something, another one if it could not look: it cannot read the file, or lacks a library.
judge()
{
    case $1 in
    0) ;;
    1 | 3) complain "$2: $3" ;;
    *) complain "$2: cannot be checked here" ;;
    esac
}

if [ $# = 0 ]; then
    list=$(mktemp) || exit 1
    trap 'rm -f "$list"' EXIT
    find . \( -type f -o -type l \) \( -name '*.safetensors' -o -name '*.gguf' -o -name '*.pt' \
        -o -name '*.pth' -o -name 'pytorch_model*.bin' -o -name '*.ckpt' -o -name '*.npy' \
        -o -name '*.npz' -o -name '*.onnx' -o -name '*.zt' -o -name '*.msgpack' \
        -o -name '*.bpk' -o -name '*.pt2' -o -name '*.keras' -o -name '*.h5' \) ! -path './.git/*' >"$list"
    while IFS= read -r file; do check "$file"; done <"$list"
else
    for file; do check "$file"; done
fi
echo "check_models: $models models, $([ $failed = 0 ] && echo all right || echo not all right)"
exit $failed
