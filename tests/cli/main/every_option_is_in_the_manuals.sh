for c in $($HEFT --help | sed -n '/^Look:/,/^`heft/s/^  \([a-z]*\) .*/\1/p'); do
    for option in $($HEFT "$c" --help | grep -o -e '--[a-z][a-z-]*'); do
        grep -q -e "$option\>" "$CASES/../../docs/cli.md" || echo "docs/cli.md does not know $c $option"
    done
done
