for c in $($HEFT --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    for option in $($HEFT "$c" --help | grep -o -e '--[a-z][a-z-]*'); do
        for manual in docs/cli.md docs/man/heft.1.scd; do
            grep -q -e "$option\>" "$CASES/../../$manual" || echo "$manual does not know $c $option"
        done
    done
done
