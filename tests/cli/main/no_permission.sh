chmod 0 two.safetensors
if [ "$(id -u)" = 0 ]; then
    command -v setpriv > /dev/null || { echo "no setpriv"; exit 77; }
    setpriv --reuid=65534 --clear-groups test -x "$HEFT" || { echo "the tool is out of reach"; exit 77; }
    setpriv --reuid=65534 --clear-groups $HEFT ls two.safetensors
else
    $HEFT ls two.safetensors
fi
