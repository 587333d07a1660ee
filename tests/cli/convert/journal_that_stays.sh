# The file is replaced; the message says that the journal of the replaced one is still there.
$HEFT convert small.safetensors out.mag
echo 'of an edit' > out.mag.heft-journal
$PYTHON - <<'P'
import sys
import traced
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)
print(*traced.run(["inject=unlink,unlinkat:error=EPERM"], "convert", "--force", "two.safetensors", "out.mag"))
P
[ $? = 77 ] && exit 77
ls out.mag*
$HEFT ls --raw out.mag | cut -f 1
$HEFT convert --force two.safetensors out.mag
ls out.mag*
