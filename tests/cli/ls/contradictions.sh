for options in '--tree --json' '--tree --sort name' '--depth 1' '--totals --raw' '--totals --json' \
    '--tree --long' '--tree --limit 1'; do
    $HEFT ls $options two.safetensors
    echo "exit $?"
done
