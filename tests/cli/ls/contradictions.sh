for options in '--tree --json' '--tree --sort name' '--depth 1' '--totals --raw'; do
    $HEFT ls $options two.safetensors
    echo "exit $?"
done
