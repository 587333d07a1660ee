$PYTHON -c '
from samples import write_safetensors
names = ["a", "b", "ab", "{a,b}", "{a}", "x,y", "a{b", "c1", "c2"]
write_safetensors("b.safetensors", {n: ("U8", [1], b"x") for n in names})'
for pattern in '{a,b}' '{a,{b,c[12]}}' 'a{,b}' '\{a,b\}' '{a}' 'a{b' '{a' '[{]a,b}' '{a,b' '{,a}{,b}' '{x,}[,]y' '{,}'; do
    echo "$pattern: $($HEFT ls --raw b.safetensors "$pattern" 2>/dev/null | cut -f1 | tr '\n' ' ')"
done
$HEFT ls b.safetensors '{no,nothing}'
echo "exit $?"
$HEFT convert --keep '{a,x*}' b.safetensors k.safetensors
$HEFT ls --raw k.safetensors | cut -f1
