for to in burnpack:0.20 burnpack:0.21 embd:1.0 embd:simple gptrs-archive:2 gptrs-checkpoint:2 mag:1 \
          mag:100 mag:snapshot ztensor:1.0 ztensor:1.1 ztensor:1.2 ztensor:2; do
    $HEFT convert --force --to ${to%:*} --format-version ${to#*:} --cast '*=f32' two.safetensors m 2> /dev/null
    $HEFT hash m | grep -v '(model)' | sort > before
    $HEFT append --cast f32 m small.safetensors || echo "$to: $?"
    $HEFT hash m | sort | comm -23 before - # what is there no more
    wc -l < before
    $HEFT verify m | sed "s/^m/$to/"
    $HEFT ls --raw m | sort | cut -f1-3
done
for to in safetensors gguf npz; do
    $HEFT convert --force --to $to small.safetensors m 2> /dev/null
    $HEFT append -v m two.safetensors
    $HEFT ls --raw m | sort | cut -f1-3
done
ls -A | grep heft || echo nothing is left
