$HEFT help ls > a && $HEFT ls --help > b && cmp a b && cat a
