# With --offline every command refuses every URL before anything is read or written, also in a build without libcurl.
run() { $HEFT "$@" --offline < /dev/null; echo "$?: $*"; }
for command in ls info stats hash ids verify report sbom; do
    run $command https://host.invalid/model.zt
done
run cat hf://owner/name w
run show s3://bucket/model.zt w
run convert http://user:secret@host.invalid/model.zt?key=secret new.npz
run convert small.safetensors s3://bucket/model.zt
run merge small.safetensors https://host.invalid/model.zt new.npz
run split --count 2 https://host.invalid/model.zt parts
run diff small.safetensors hf://owner/name
run append small.safetensors hf://owner/name
run ids small.safetensors --model hf://owner/name
run ls small.safetensors 'https://a.pattern'
ls
