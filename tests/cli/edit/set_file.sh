# --set-file sets metadata to the text of a file.
printf '{%% for m in messages %%}\n{{ m }}=1\n{%% endfor %%}' > template.txt
$HEFT convert --set-file tokenizer.chat_template=template.txt small.safetensors a.gguf
$HEFT edit --set-file tokenizer.chat_template=template.txt --set-file note=template.txt a.gguf
$HEFT info --json a.gguf | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['metadata'])"
for arg in template.txt =template.txt key= key=missing.txt; do
    $HEFT edit --set-file "$arg" a.gguf; echo "= $?"
done
$HEFT convert --set n:u32=1 small.safetensors b.gguf; $HEFT edit --set-file n=template.txt b.gguf; echo "= $?"
# The text of a file is a text, whatever it looks like.
printf '["a"]' > list.json
$HEFT edit --set-file l=list.json a.gguf
$HEFT info --json a.gguf | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['metadata']['l'])"
# A file whose text is read is not replaced.
cp template.txt template.gguf
$HEFT convert -f --set-file note=template.gguf small.safetensors template.gguf; echo "= $?"
cmp template.txt template.gguf
