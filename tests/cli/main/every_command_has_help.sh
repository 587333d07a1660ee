for c in $($HEFT --help | sed -n '/^Look:/,/^`heft/s/^  \([a-z]*\) .*/\1/p'); do
    $HEFT "$c" --help > text || echo "$c exits with $?"
    sed '/^Example:/,$d' text | grep -E '.{81}' && echo "$c --help is wider than 80 columns"
    for word in Usage: "Options of every command:" Example: --help --color; do
        grep -q -e "$word" text || echo "$c --help does not say $word"
    done
    $HEFT "$c" --no-such-option > text 2> err
    [ $? = 2 ] || echo "$c takes an unknown option"
    [ -s text ] && echo "$c talks on stdout"
    grep -q "^heft: $c: unknown or ambiguous option '--no-such-option'" err || cat err
    echo "$c"
done
