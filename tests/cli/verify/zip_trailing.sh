# Bytes after a zip archive: the file opens, and a note says how many bytes follow. Other programs
# ignore them, too.
$PYTHON -c '
from samples import f32, torch_members, zip_stream
data = zip_stream(torch_members({"w": ("FloatStorage", 2, f32(1, 2))}))
open("tail.pt", "wb").write(data + b"notes of somebody")'
$HEFT convert -q two.safetensors tail.npz 2> none
printf 'more' >> tail.npz
for file in tail.pt tail.npz; do
    $HEFT verify $file
    $HEFT verify --strict $file; echo $?
    $HEFT doctor $file; echo $?
    $HEFT doctor -o $file.safetensors $file 2> none && $HEFT ls --raw $file.safetensors
done
