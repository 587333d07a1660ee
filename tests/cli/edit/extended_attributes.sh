# A new file gets the extended attributes, the mode and the owner of the file that it replaces.
$PYTHON -c 'import os; os.setxattr("small.safetensors", "user.origin", b"here")' 2> /dev/null ||
    { echo "no extended attributes here"; exit 77; }
chmod 640 small.safetensors
$HEFT edit -v --set license=MIT small.safetensors
stat -c %a small.safetensors
$PYTHON -c 'import os; print(os.getxattr("small.safetensors", "user.origin").decode())'
