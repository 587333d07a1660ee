# Files of a Hugging Face cache and of a download folder are compared with the digests that the hub
# states: SHA-256 for large files, git's SHA-1 for small ones.
$PYTHON - <<'EOF'
import hashlib, os
def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data)
weights, config = open("two.safetensors", "rb").read(), b'{"model_type": "test"}\n'
sha256 = hashlib.sha256(weights).hexdigest()
sha1 = hashlib.sha1(b"blob %d\0" % len(config) + config).hexdigest()
snapshot = "models--o--n/snapshots/0123"
os.makedirs(snapshot)
for name, digest, data in (("model.safetensors", sha256, weights), ("config.json", sha1, config)):
    put("models--o--n/blobs/" + digest, data)
    os.symlink("../../blobs/" + digest, snapshot + "/" + name)
    put("local/deep/" + name, data)
    put("local/.cache/huggingface/download/deep/" + name + ".metadata",
        f"0123\n{digest}\n1700000000.5\n".encode())
open("weights", "w").write("models--o--n/blobs/" + sha256)
EOF
S=models--o--n/snapshots/0123
$HEFT verify --hub $S/model.safetensors $S/config.json $S models--o--n "$(cat weights)"
$HEFT verify --hub local local/deep/model.safetensors local/deep
echo "a file of the user"
echo x > local/notes.txt
$HEFT verify --hub local
echo x > models--o--n/snapshots/0123/README
$HEFT verify --hub models--o--n; rm models--o--n/snapshots/0123/README
$HEFT verify --hub --strict local; echo $?
echo "not in a cache"
$HEFT verify --hub two.safetensors; echo $?
$HEFT verify --hub missing; echo $?
$HEFT verify --hub --quick $S; echo $?
echo "a changed byte"
printf X | dd of="$(cat weights)" bs=1 seek=300 conv=notrunc 2>/dev/null
printf X >> local/deep/config.json
$HEFT verify --hub $S | sed "s/content has [0-9a-f]*/content has .../"; echo $?
$HEFT verify --hub --json $S local | sed "s/content has [0-9a-f]*/content has .../"
$HEFT verify --hub local
echo "an empty cache"
mkdir empty
HF_HUB_CACHE=$PWD/empty $HEFT ls hub:o/n 2>&1 | sed "s|'/.*empty'|...|"
echo "a shard index in the working directory"
$HEFT split --no-sync --count 2 two.safetensors here
$PYTHON - <<'EOF'
import hashlib, os
folder = "here/.cache/huggingface/download/"
os.makedirs(folder)
for name in sorted(os.listdir("here"))[1:]:
    data = open("here/" + name, "rb").read()
    digest = hashlib.sha256(data).hexdigest()
    open(folder + name + ".metadata", "w").write(f"0123\n{digest}\n1700000000.5\n")
EOF
cd here
$HEFT verify --hub model.safetensors.index.json
printf X | dd of=model-00002-of-00002.safetensors bs=1 seek=100 conv=notrunc 2>/dev/null
$HEFT verify --hub model.safetensors.index.json | sed "s/content has [0-9a-f]*/content has .../; s/, not [0-9a-f]*/, not .../"
echo "a name that is too long for a metadata file"
cp ../two.safetensors "$(printf 'n%.0s' $(seq 250))"
$HEFT verify --hub . | sed "s/content has [0-9a-f]*/content has .../; s/, not [0-9a-f]*/, not .../; s/n\{250\}/N/"
