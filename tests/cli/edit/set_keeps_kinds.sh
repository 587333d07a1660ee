# A value without a type keeps the kind that the file has; a type changes it.
meta() { $HEFT info --json "$1" | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['metadata'])"; }
$HEFT convert --set count:u32=4 --set ratio:f32=0.5 --set on=true --set size:str=7B --set n:str=3 small.safetensors a.gguf
for set in count=abc count=1.5 count=true ratio=high on=1 on=maybe; do
    echo "== $set"; $HEFT edit --set "$set" a.gguf; echo "= $?"
done
$HEFT edit --set count=5 --set ratio=2 --set on=false --set size=8 --set n=4 a.gguf && meta a.gguf
$HEFT edit --set count:str=abc a.gguf && meta a.gguf
$HEFT convert --set ratio=low a.gguf b.gguf; echo "= $?"
echo "== types"
for set in step:int=3 step:float=1 step:string=x step:i23=1 step:st=x 'l:[int]=[1]' http://x=1 tags:en=2; do
    echo "== $set"; $HEFT edit --set "$set" a.gguf; echo "= $?"
done
meta a.gguf
