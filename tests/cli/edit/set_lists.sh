# --set keeps a list a list, and makes one where the format stores lists.
meta() { $HEFT info --json "$1" | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['metadata'])"; }
$HEFT convert --set 'general.tags=["a","b"]' --set 'n=[1,2]' --set 'x:[f32]=[0.5]' --set 't:str=[1]' \
    --set 'flags=[true,false]' --set 'not=[a]' small.safetensors a.gguf && meta a.gguf
$HEFT edit --set 'general.tags=["x", "y\u0041", "z"]' --set 'n=[3]' --set 'x=[1,2.25]' a.gguf && meta a.gguf
$HEFT edit --set 'general.tags=x' a.gguf || echo "= $?"
$HEFT edit --set 'n=["a"]' a.gguf || echo "= $?"
$HEFT edit --set 'n=[2147483648]' a.gguf || echo "= $?"
$HEFT edit --set 'n=[1,[2]]' a.gguf || echo "= $?"
$HEFT edit --set 'n=4' a.gguf || echo "= $?"
$HEFT edit --set 'n:str=text' --set 'x:[u8]=[1,2]' a.gguf && meta a.gguf
$HEFT edit --set 'x=[]' --set 'general.tags=[]' a.gguf && meta a.gguf
$HEFT convert --format-version 2 a.gguf b.zt && $HEFT edit --set 'general.tags=["q"]' b.zt && meta b.zt
# A type decides what the elements are.
$HEFT edit --set 'flags=[false]' --set 's:[str]=["1"]' --set 'b:[bool]=[true, false]' a.gguf && meta a.gguf
for wrong in 's:[str]=[1]' 's:[str]=x' 'b:[bool]=["a"]' 'n:[i64]=["a"]' 'flags=[1]' 'n:[null]=[]'; do
    $HEFT edit --set "$wrong" a.gguf || echo "= $?"
done
# safetensors stores only texts
$HEFT convert --set 'l=["a"]' small.safetensors c.safetensors && meta c.safetensors
