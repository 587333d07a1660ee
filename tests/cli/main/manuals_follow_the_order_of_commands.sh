# The manuals describe the commands in the order of --help.
in_one_line() {
    echo "$1" $(sed -n "$2" "$CASES/../../$1")
}
commands=$(echo $($HEFT --help | sed -n '/^Look:/,/^`heft/s/^  \([a-z]*\) .*/\1/p'))
{
    in_one_line docs/cli.md 's/^| \[`heft \([a-z]*\).*/\1/p'
    in_one_line docs/cli.md 's/^## \([a-z]*\)$/\1/p'
} | grep -v " $commands\$"
true
