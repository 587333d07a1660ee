$HEFT convert --cast '*=f32' two.safetensors m.gptrs 2> /dev/null
say() { $HEFT ls --json m.gptrs | grep -o '"name": "[^"]*"\|"attributes.*}}'; $HEFT verify m.gptrs; }
try() { $HEFT edit "$@"; echo "exit $?"; }
try -v --requires-grad '*.weight=true' m.gptrs && say
try --requires-grad '*.bias=unset' --requires-grad true --base-ids none m.gptrs && say
try --base-ids name --rename layer.bias=bias m.gptrs && say
try --requires-grad maybe m.gptrs
try --requires-grad 'none.*=true' m.gptrs
try --base-ids hash m.gptrs
try --base-ids name --rename "bias=$(printf 'b\303\274')" m.gptrs
$HEFT convert --cast '*=f32' two.safetensors m.weights 2> /dev/null
try --requires-grad true m.weights
try --base-ids name m.weights
$PYTHON - <<'END'
data = bytearray(open("m.gptrs", "rb").read())
data[data.index(b"ids") + 3] ^= 1
open("m.gptrs", "wb").write(data)
END
try --base-ids none m.gptrs
