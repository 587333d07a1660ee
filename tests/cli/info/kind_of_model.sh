kind() {
    $HEFT info "$1" | sed -n 's/^Model  *//p'
}
names() {
    $PYTHON -c '
import sys
from samples import f32, write_safetensors
write_safetensors("n.safetensors", {n: ("F32", [1], f32(1)) for n in sys.argv[1:]})' "$@"
    echo "$1: $(kind n.safetensors)"
}
# by names
names x transformer.h.0.attn.c_attn.weight
names model.layers.0.self_attn.q_proj.weight
names base.layers.0.self_attn.q_proj.lora_A.weight base.layers.0.self_attn.q_proj.weight
names lora_unet_down_blocks_0.lora_down.weight
names unet.conv_in.weight
names model.diffusion_model.input_blocks.0.0.weight first_stage_model.decoder.conv_in.bias
names encoder.block.0.layer.0.SelfAttention.q.weight
names bert.encoder.layer.11.attention.self.query.weight
names backbone.layers.3.mixer.A_log
names layer1.0.conv1.weight
names weight
# by metadata, escaped
$PYTHON -c '
from samples import f32, write_safetensors
write_safetensors("m.safetensors", {"h.0.attn.c_attn.weight": ("F32", [1], f32(1))}, {"modelspec.architecture": "my\x1b[31m net" + "x" * 300})'
kind m.safetensors
# by config.json of a folder; a file in the folder has none of its own
kind bert
kind bert/model.safetensors
echo '{"architectures": [], "model_type": "tiny"}' >bert/config.json
kind bert
echo '{"architectures": [' >bert/config.json
kind bert
rm bert/config.json
ln -s /etc/passwd bert/config.json
kind bert
$HEFT info bert
echo "exit $?"
# a config without a known key
rm bert/config.json
echo '{"vocab_size": 3}' >bert/config.json
echo "by the names: $(kind bert)"
# the config of an adapter is not read through a link that leaves the folder
mkdir adapter
cp small.safetensors adapter/adapter_model.safetensors
ln -s /etc/passwd adapter/adapter_config.json
$HEFT info adapter/adapter_model.safetensors
echo "exit $?"
