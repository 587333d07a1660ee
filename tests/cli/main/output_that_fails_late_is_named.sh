# The disk is full, or broken, when the output has its size already.
$PYTHON - <<'P'
import sys
import traced
from samples import write_safetensors
if traced.SKIP:
    print(traced.SKIP)
    sys.exit(77)
write_safetensors("in.safetensors", {n: ("I8", [9000], bytes(9000)) for n in "abc"})
MERGE = ("merge", "in.safetensors", "out.safetensors")
SPLIT = ("split", "--count", "3", "in.safetensors", "shards")
for call, error in ("?pwrite64,?pwritev", "ENOSPC"), ("?pwrite64,?pwritev", "EDQUOT"), ("fsync", "EIO"):
    for command in MERGE, SPLIT, (*SPLIT, "--to", "ztensor"), (*SPLIT, "--to", "gguf"):
        code, text = traced.run([f"inject={call}:error={error}:when=1"], *command)
        print(command[0], error, code, text)
# zTensor shards are read back for the digests that others have; the loader reads before heft does
for when in range(1, 40):
    code, text = traced.run([f"inject=pread64:error=EIO:when={when}"], *SPLIT, "--to", "ztensor", "--threads", "1")
    if "shards/" in text:
        print("read back", code, text)
        break
P
code=$?; [ $code = 0 ] || exit $code
ls -d out.* shards 2> /dev/null || echo nothing is left
