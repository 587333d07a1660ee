# Folders whose content may not be read, or whose files may not be examined.
as_user=
if [ "$(id -u)" = 0 ]; then
    command -v setpriv > /dev/null || { echo "no setpriv"; exit 77; }
    as_user="setpriv --reuid=65534 --clear-groups"
    $as_user test -x "$HEFT" || { echo "the tool is out of reach"; exit 77; }
fi
mkdir -p a/closed b/listed c a/.cache/huggingface b/.cache/huggingface
cp small.safetensors a/closed; cp small.safetensors b/listed; mkfifo c/config.json
echo no key > key; chmod 644 key
chmod 0 a/closed c/config.json; chmod 744 b/listed; chmod 644 b/listed/*
[ "$as_user" ] || chmod 444 b/listed
for folder in a b; do
    for command in "verify --hub" "sign --key key"; do
        $as_user $HEFT $command $folder; echo $?
    done
done
$as_user $HEFT convert --config c/config.json small.safetensors out.gptrs; echo $?
chmod 755 a/closed b/listed
