# Root keeps the owner of a file that is replaced.
[ "$(id -u)" = 0 ] || { echo "only root can give files away"; exit 77; }
chown 12:34 small.safetensors
$HEFT edit -v --set license=MIT small.safetensors
stat -c %u:%g small.safetensors
