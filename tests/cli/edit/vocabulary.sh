$HEFT convert bert m.weights
$HEFT hash --json m.weights | grep -o '"digest":"[^"]*"' > before
printf '[PAD]\nnew\n[UNK]\n' > few.txt; seq 500 > many.txt
say() { $HEFT info m.weights | grep Vocabulary; $HEFT verify m.weights | grep -v special-none; $HEFT cat m.weights --part vocab | head -3; }
$HEFT edit -v --vocab few.txt m.weights 2>&1 | grep -v note: ; say
$HEFT edit -v --special unk=1,pad=none m.weights 2>&1 | grep -v note:; say
$HEFT edit -v --vocab many.txt --special pad=499 --set vocab_size=500 m.weights 2>&1 | grep -v note: ; say
$HEFT edit -v --vocab tokenizer.json --set vocab_size=8 m.weights 2>&1 | grep -v note: ; say
$HEFT hash --json m.weights | grep -o '"digest":"[^"]*"' | cmp - before
$HEFT convert bert again.weights && $HEFT diff m.weights again.weights && echo "as at first"
cp m.weights kept
try() { $HEFT edit "$@"; echo "exit $?"; }
try --special pad=8 m.weights
try --special pad=x m.weights
try --special what=1 m.weights
try --vocab missing.txt m.weights
printf 'x\377\n' > broken.txt
try --vocab broken.txt m.weights
$PYTHON -c 'print("t" * 65536)' > long.txt
try --vocab long.txt m.weights
try --vocab few.txt two.safetensors
$HEFT convert two.safetensors m.gguf
try --vocab few.txt m.gguf
$HEFT convert two.safetensors --cast '*=f32' none.weights 2> /dev/null
try --special pad=0 none.weights
try --dry-run --vocab many.txt m.weights
cmp m.weights kept
