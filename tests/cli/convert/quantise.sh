# What --quantize says; tests/py/check_quantize.py judges the bytes of each method.
$PYTHON - <<'P'
from samples import write_safetensors
zeros = lambda bytes_, *shape: ("F32", list(shape), bytes(bytes_))
write_safetensors("in.safetensors", {"a.weight": zeros(8192, 32, 64), "b.weight": zeros(80, 2, 10),
                                     "c.bias": zeros(256, 64)})
P
mkdir out
echo "== chosen, and not stored in the scheme"
$HEFT convert -n --quantize '*=mxfp4' in.safetensors out/m.safetensors
$HEFT convert -n --strict --quantize '[ab].*=mxfp4' in.safetensors out/m.safetensors || echo "= $?"
echo "== a pattern without a tensor"
$HEFT convert -n --strict --quantize mxfp4 --quantize 'd.*=none' in.safetensors out/m.safetensors || echo "= $?"
echo "== outputs without config.json"
$HEFT convert --quantize mxfp4 --to safetensors in.safetensors - > piped.safetensors && $HEFT ls --raw piped.safetensors | cut -f 1,2
$HEFT convert --quantize mxfp4 in.safetensors out/m.pt && ls out
$HEFT convert --quantize mxfp4:gguf --rename s/a.weight/blk.0.ffn_up.weight/ in.safetensors out/m.gguf && $HEFT ls --raw out/m.gguf | cut -f 1,2
echo "== names that config.json would not have"
$HEFT convert --quantize mxfp4 --rename a.weight=x.weight in.safetensors out/m.safetensors || echo "= $?"
ls out
echo "== a config.json with a mode of its own, or behind a link, is replaced"
mkdir kept linked && echo '{}' > kept/config.json && chmod 640 kept/config.json && ln -s ../kept/config.json linked/config.json
$HEFT convert --quantize mxfp4 in.safetensors linked/m.safetensors || echo "= $?"
ls linked
$HEFT convert --force --quantize mxfp4 in.safetensors linked/m.safetensors || echo "= $?"
stat -c %a kept/config.json && grep -c quant_method kept/config.json && readlink linked/config.json && ls linked
echo "== a pattern without a tensor is reported once"
mkdir once && $HEFT convert --quantize mxfp4 --quantize 'd.*=none' in.safetensors once/m.safetensors
echo "== matrices of integers and of many dimensions stay, and the result can be read"
$PYTHON - <<'P'
from samples import write_safetensors
write_safetensors("kinds.safetensors", {
    "a.weight": ("F32", [32, 64], bytes(8192)), "map.weight": ("I32", [2, 3], bytes(24)),
    "bytes.weight": ("U8", [2, 3], bytes(6)), "conv.weight": ("U8", [2, 3, 1, 1], bytes(6))})
P
mkdir kinds && $HEFT convert -q --quantize mxfp4 kinds.safetensors kinds/m.safetensors && $HEFT ls kinds/m.safetensors | cut -f 1,2
grep -o 'modules_to_not_convert.*\|"ignore".*' kinds/config.json
echo "== settings replace neither the weights nor an input"
mkdir self && $HEFT convert --force --to safetensors --quantize mxfp4 in.safetensors self/config.json || echo "= $?"
ls self && echo '{"note": 1}' > self/config.json
$HEFT convert -q --force --set-file note=self/config.json --quantize mxfp4 in.safetensors self/m.safetensors || echo "= $?"
ls self && cat self/config.json
echo "== a table beside quantised weights is no weight without its scale"
$PYTHON - <<'P'
from samples import write_safetensors
write_safetensors("map.safetensors", {
    "a.weight": ("F8_E4M3", [2, 32], bytes(64)), "a.weight_scale": ("F32", [], bytes(4)),
    "a.weight_map": ("U8", [2, 3], bytes(6))})
P
$HEFT convert -q --dequantize map.safetensors map.pt && $HEFT ls --raw map.pt | cut -f 1,2
