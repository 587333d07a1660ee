# Texts beside the weights are links: followed in the folder or its repository, and nowhere else.
try() { echo "-- $1"; $HEFT convert -f bert out.weights; echo "exit $?"; }
echo "not yours" > secret
mv bert/vocab.txt bert/words && ln -s words bert/vocab.txt
try "in the folder" && $HEFT cat out.weights --part vocab | head -n 1
for target in ../secret "$PWD/secret" /etc/passwd vocab.txt none; do
    ln -sf "$target" bert/vocab.txt
    try "vocab.txt -> $(basename "$target")"
done 2>&1 | sed "s|$PWD|.|"
rm bert/vocab.txt && mv bert/words bert/vocab.txt
echo '{"vocab_size": 99}' > outside.json
ln -sf ../outside.json bert/config.json
try "config.json -> ../outside.json" 2>&1

mkdir -p hub/models--a--b/blobs hub/models--a--b/snapshots/r hub/models--c--d/blobs
rm bert/config.json && echo '{"vocab_size": 6}' > bert/config.json
for file in bert/*; do
    mv "$file" "hub/models--a--b/blobs/$(basename "$file").blob"
    ln -s "../../blobs/$(basename "$file").blob" "hub/models--a--b/snapshots/r/$(basename "$file")"
done
echo "-- a cache"
$HEFT convert -f hub/models--a--b/snapshots/r out.weights && $HEFT info out.weights | grep vocab
mv hub/models--a--b/blobs/vocab.txt.blob hub/models--c--d/blobs
ln -sf ../../../models--c--d/blobs/vocab.txt.blob hub/models--a--b/snapshots/r/vocab.txt
$HEFT convert -f hub/models--a--b/snapshots/r out.weights
echo "exit $?"
