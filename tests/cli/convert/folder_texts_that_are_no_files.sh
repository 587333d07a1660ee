# Nothing hangs, and nothing is read without an end.
try() { echo "-- $1"; $HEFT convert bert out.weights; echo "exit $?"; rm -r "bert/$2"; }
for name in vocab.txt config.json; do
    rm bert/$name && mkfifo bert/$name
    try "$name is a pipe" $name
    mkdir bert/$name
    try "$name is a folder" $name
    ln -s /dev/zero bert/$name
    try "$name is a link to a device" $name
    truncate -s 200G bert/$name 2> /dev/null || truncate -s 300M bert/$name
    try "$name is 200 GB of nothing" $name
done 2>&1
test ! -e out.weights
