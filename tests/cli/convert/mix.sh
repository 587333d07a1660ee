# Mixes of GGUF; tests/py/check_ggml_mixes.py judges types and bytes.
PYTHONPATH=$CASES/../py $PYTHON - <<'P'
import struct, gen_gguf
f32 = lambda name, *shape: (name, "f32", shape, struct.pack("<f", 0.5) * (shape[0] * shape[-1]))
meta = [("general.architecture", "str", "llama"), ("llama.block_count", "u32", 8)]
names = ["blk.0.attn_v", "blk.0.ffn_down", "output", "token_embd"]
tensors = [*(f32(n + ".weight", 4, 256) for n in names), f32("blk.0.attn_norm.weight", 1, 256)]
write = lambda path, meta, tensors: open(path, "wb").write(gen_gguf.File(tensors, meta).bytes())
write("good.gguf", meta, tensors)
write("odd.gguf", meta, [f32("blk.0.ffn_up.weight", 4, 288), f32("blk.1.ffn_up.weight", 4, 40)])
write("bare.gguf", meta[:1], tensors)
write("nan.gguf", meta, [("a.weight", "f32", (2, 32), struct.pack("<64f", *[1] * 40, float("nan"), *[1] * 23))])
def imatrix(path, count, value):
    name = b"blk.0.ffn_down.weight"
    open(path, "wb").write(struct.pack("<ii", 1, len(name)) + name + struct.pack(f"<ii{count}f", 2, count, *[value] * count))
imatrix("good.dat", 256, 3)
imatrix("short.dat", 255, 3)
imatrix("nan.dat", 256, float("nan"))
row = lambda name, count, value: (name, "f32", (count,), struct.pack("<f", value) * count)
write("good.imatrix", [("general.type", "str", "imatrix")],
      [row("blk.0.ffn_down.weight.in_sum2", 256, 3), row("blk.0.ffn_down.weight.counts", 1, 2)])
write("large.gguf", meta, [("a.weight", "f32", (2, 32), struct.pack("<64f", *[1] * 40, 1e9, *[1] * 23))])
P
$PYTHON - <<'P'
import struct
from samples import write_safetensors
e4m3 = bytes([0x38, 0x40, 0xB8, 0x30] * 64)
write_safetensors("fp8.safetensors", {"l.weight": ("F8_E4M3", [8, 32], e4m3),
                                      "l.weight_scale_inv": ("F32", [1, 1], struct.pack("<f", 0.25))})
P
echo "== a mix, and what it would do"
$HEFT convert --quantize Q4_K_M good.gguf out.gguf; $HEFT ls --raw out.gguf | cut -f 1-3; $HEFT info out.gguf | grep Mix
$HEFT convert -n --quantize q4_k_m --imatrix good.dat good.gguf no.gguf
echo "== types of one's own"
$HEFT convert -qf --quantize q4_k --tensor-type '\.attn_[vk]=q5_0' --leave-output-tensor \
    --token-embedding-type q8_0 --quantize '*ffn_down*=none' good.gguf out.gguf; $HEFT ls --raw out.gguf | cut -f 1,2
$HEFT convert -qf --quantize q4_k_m --pure --output-tensor-type f16 good.gguf out.gguf; $HEFT ls --raw out.gguf | cut -f 1,2
echo "== columns that do not divide"; $HEFT convert -f --quantize q4_k_s odd.gguf out.gguf
echo "== the importance is stated"; $HEFT convert -qf --quantize q4_0 --imatrix good.dat good.gguf out.gguf
$HEFT info out.gguf | grep imatrix
$HEFT convert -qf --quantize q4_0 --imatrix good.imatrix good.gguf same.gguf
$HEFT cat out.gguf blk.0.ffn_down.weight > a; $HEFT cat same.gguf blk.0.ffn_down.weight > b; cmp a b
echo "== of another model"; $HEFT convert --quantize q4_0 --imatrix short.dat good.gguf no.gguf || echo "= $?"
sed s/ffn_down/ffn_dawn/ good.dat > other.dat
$HEFT convert -f --quantize q4_0 --imatrix other.dat good.gguf useless.gguf
$HEFT convert --strict --quantize q4_0 --imatrix other.dat good.gguf no.gguf || echo "= $?"
echo "== bytes after the end of an imatrix"
$PYTHON -c "import struct; open('tail.dat', 'wb').write(open('good.dat', 'rb').read() + struct.pack('<ii', 5, 1) + b'xtail')"
$HEFT convert -qf --quantize q4_0 --imatrix tail.dat good.gguf tail.gguf && $HEFT info tail.gguf | grep chunks
$HEFT convert -f --quantize q4_0 --imatrix tail.dat good.gguf tail.gguf
$HEFT convert --strict --quantize q4_0 --imatrix tail.dat good.gguf no.gguf || echo "= $?"
echo "== an imatrix is not replaced"; $HEFT convert -f --to gguf --quantize q4_0 --imatrix good.dat good.gguf good.dat || echo "= $?"
echo "== with NaN"; $HEFT convert --quantize q4_0 --imatrix nan.dat good.gguf no.gguf || echo "= $?"
echo "== no imatrix"; $HEFT convert --quantize q4_0 --imatrix good.gguf good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q2_k_s --set llama.attention.head_count=4 good.gguf no.gguf || echo "= $?"
echo "== unknown names"; $HEFT convert --quantize q9 good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q4_0 --tensor-type a=q99 good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q4_0 --tensor-type 'a(=q4_0' good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q4_0 --tensor-type q4_0 good.gguf no.gguf || echo "= $?"
$HEFT convert --pure good.gguf no.gguf || echo "= $?"
echo "== one name"; $HEFT convert --quantize q4_0 --quantize q8_0 good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q4_0 --quantize fp8 good.gguf no.gguf || echo "= $?"
echo "== patterns that match nothing"
$HEFT convert --quantize q4_0 --quantize 'blk.0.ffn_dow.weight=q8_0' --tensor-type 'ffn_[u]p=q8_0' good.gguf out2.gguf || echo "= $?"
$HEFT convert --strict --quantize q4_0 --tensor-type 'ffn_[u]p=q8_0' good.gguf no.gguf || echo "= $?"
echo "== rules without an effect"
$HEFT convert -f --quantize q4_0 --tensor-type 'norm=q8_0' good.gguf useless.gguf
$HEFT convert --strict --quantize q4_0 --tensor-type 'norm=q8_0' good.gguf no.gguf || echo "= $?"
$HEFT convert -f --quantize q4_0 --cast f16 good.gguf useless.gguf
$HEFT convert --strict --quantize q4_0 --cast f16 good.gguf no.gguf || echo "= $?"
echo "== expressions of ECMAScript, as llama-quantize takes them"
for e in 'blk\.\d+\.attn_v' 'blk\.(?:0|7)\.ffn_\w+?\.weight$' '[\d]\.ffn_[^\s]own'; do
    $HEFT convert -qf --quantize q4_k_m --tensor-type "$e=q5_0" good.gguf out.gguf; $HEFT ls --raw out.gguf | cut -f 1,2 | grep q5_0
done
for e in 'ffn_(?!up)' 'ffn_[\W]'; do $HEFT convert --quantize q4_0 --tensor-type "$e=q4_0" good.gguf no.gguf || echo "= $?"; done
echo "== types that are none of weights"
$HEFT convert -q --quantize q4_0 --tensor-type 'attn_v=i32' good.gguf no.gguf || echo "= $?"
$HEFT convert -q --quantize q4_0 --token-embedding-type i8 good.gguf no.gguf || echo "= $?"
echo "== types that are not written"; $HEFT convert --quantize iq2_m good.gguf no.gguf || echo "= $?"
echo "== a pattern"; $HEFT convert --quantize 'blk.*=q4_k_m' good.gguf no.gguf || echo "= $?"
echo "== metadata are missing"; $HEFT convert --quantize q4_k_m bare.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q2_k good.gguf no.gguf || echo "= $?"
$HEFT convert --quantize q4_k_m fp8.safetensors no.gguf --requantize --rename l.weight=blk.0.attn_v.weight || echo "= $?"
$HEFT convert -q --quantize q4_k_m --set llama.block_count=8 bare.gguf set.gguf && $HEFT ls --raw set.gguf | head -2 | cut -f 1,2
echo "== NaN"; $HEFT convert -q --quantize q8_0 nan.gguf no.gguf || echo "= $?"
$HEFT convert -qf --allow-nan --quantize q8_0 nan.gguf out.gguf; $HEFT ls --raw out.gguf | cut -f 1,2
echo "== too large for a block"; $HEFT convert -q --quantize q8_0 large.gguf no.gguf || echo "= $?"
echo "== a second loss"; $HEFT convert -qf --quantize q8_0 good.gguf q8.gguf
$HEFT convert -q --quantize q4_0 q8.gguf no.gguf || echo "= $?"
$HEFT convert -q --quantize '*=mxfp4' q8.gguf no.pt || echo "= $?"
$HEFT convert -qf --requantize --quantize q4_0 q8.gguf out.gguf; $HEFT ls --raw out.gguf | head -1 | cut -f 1,2
$HEFT convert -q --quantize q8_0 fp8.safetensors no.gguf || echo "= $?"
$HEFT convert --requantize --quantize q8_0 fp8.safetensors out8.gguf
$HEFT convert -q --cast f32 out8.gguf back.safetensors; $HEFT show back.safetensors l.weight | head -3
echo "== a cast"; $HEFT convert -qf --cast '*.weight=q5_1' nan.gguf no.gguf || echo "= $?"
$HEFT convert -qf --cast '*ffn*=q5_1' good.gguf out.gguf; $HEFT ls --raw out.gguf 'blk.0.f*' | cut -f 1,2
$HEFT convert -qf --cast '*=q8_0' odd.gguf no.gguf || echo "= $?"
$HEFT convert -n --quantize q4_0 --imatrix good.dat --cast '*ffn_down*=f16' --cast '*norm*=f16' good.gguf no.gguf
[ -e no.gguf ] || echo "nothing is left"
echo "== a cast of NaN"; $HEFT convert -qf --allow-nan --cast '*.weight=q8_0' nan.gguf cast.gguf && $HEFT ls --raw cast.gguf | cut -f 1,2
$HEFT convert -qf --allow-nan --quantize q8_0 nan.gguf mixed.gguf && $HEFT diff --ignore-metadata cast.gguf mixed.gguf
$HEFT append -q --rename a.weight=b.weight --cast q8_0 cast.gguf nan.gguf || echo "= $?"
$HEFT append -q --rename a.weight=b.weight --cast q8_0 --allow-nan cast.gguf nan.gguf && $HEFT ls --raw cast.gguf | cut -f 1,2
