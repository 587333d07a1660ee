echo '{"name": "x", "tensor": []}' > member.json
echo '{"tensors": [{"shape": [1]}]}' > nameless.json
echo '{"tensors": [{"name": "a", "dtype": ["f33"]}]}' > type.json
echo '{"tensors": [{"name": "{0..9999999}.{0..9999999}"}]}' > many.json
echo '{' > cut.json
for profile in member nameless type many cut missing; do
    $HEFT verify --profile $profile.json two.safetensors
    echo "exit $?"
done
HEFT_PROFILES=. $HEFT verify --profile nobody two.safetensors
echo "exit $?"
