# A text that the user names may be a link or a pipe; no device, and nothing endless.
try() { echo "-- $1"; shift; $HEFT convert -f "$@" bert out.weights; echo "exit $?"; }
mkdir away && mv bert/vocab.txt away/words && ln -s "$PWD/away/words" list
try "a link" --vocab list && $HEFT cat out.weights --part vocab | head -n 1
mkfifo pipe
cat away/words > pipe &
try "a pipe" --vocab pipe && $HEFT cat out.weights --part vocab | head -n 1
true > pipe &
try "an empty pipe" --vocab pipe
yes 2> /dev/null > pipe &
try "an endless pipe" --vocab pipe
try "a device" --vocab /dev/zero
try "a folder" --vocab away
try "nothing" --vocab none
truncate -s 256M longest.json
try "the longest" --vocab longest.json; rm longest.json
truncate -s 300M giant
try "too long" --vocab giant
rm -f m.gptrs
for config in giant /dev/zero away; do
    $HEFT convert --config "$config" two.safetensors m.gptrs
    echo "config $config: exit $?"
done
for profile in ./giant /dev/zero ./away; do
    $HEFT verify --profile "$profile" two.safetensors
    echo "profile $profile: exit $?"
done
echo '{"kind": "gpt", "config": {"n_layer": 2}}' > pipe &
$HEFT convert --config pipe small.safetensors m.gptrs && $HEFT cat m.gptrs --part config
