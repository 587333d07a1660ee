# More and more files may be open: what cannot be opened is never a fault of the model.
$HEFT split --count 2 small.safetensors set
for files in 4 5 6 7 8 9 10 11 12; do
    code=0
    (ulimit -n $files; $HEFT verify set) >out 2>err || code=$?
    case $code in 0 | 4) ;; *) echo "$files: $code" ;; esac
    grep -h fault out err
    [ $files != 6 ] || { echo $code && cat err; }
done
echo $code && cat out
