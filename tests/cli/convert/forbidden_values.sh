# A boolean that is neither 0 nor 1, which zTensor 2 forbids. A file and a pipe get the same answer.
"$PYTHON" - <<'EOF'
import json, struct
def save(name, dtype, shape, data):
    head = json.dumps({"m": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]},
                       "w": {"dtype": "U8", "shape": [1],
                             "data_offsets": [len(data), len(data) + 1]}}).encode()
    with open(name, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data + b"w")
save("bool.safetensors", "BOOL", [4], bytes([0, 1, 2, 255]))
EOF
to_v2="--to ztensor --format-version 2"
"$HEFT" convert --force bool.safetensors out.zt $to_v2; echo "to a file: $?"
"$HEFT" convert bool.safetensors - $to_v2 >pipe.zt; echo "to a pipe: $?, $(wc -c <pipe.zt) bytes"
"$HEFT" convert --dry-run bool.safetensors out.zt $to_v2; echo "dry run: $?"
ls out.zt 2>/dev/null
"$HEFT" convert --allow-loss bool.safetensors out.zt $to_v2; echo "losses allowed: $?"
"$HEFT" verify out.zt
"$HEFT" convert --allow-loss bool.safetensors - $to_v2 | cmp - out.zt && echo "the pipe is the same"
"$HEFT" convert --force --cast m=u8 bool.safetensors out.zt $to_v2; echo "cast: $?"
"$HEFT" cat out.zt m | od -An -tu1
# Other generations allow the values.
"$HEFT" convert --force bool.safetensors out.zt; echo "1.0: $?"
# A damaged file of zTensor 2 is refused, wherever the output goes.
"$PYTHON" - <<'EOF'
with open("good.safetensors", "wb") as f, open("bool.safetensors", "rb") as g:
    f.write(g.read().replace(b"\2\xff", b"\1\1"))
EOF
"$HEFT" convert --digest none good.safetensors good.zt $to_v2
"$PYTHON" - <<'EOF'
with open("good.zt", "rb") as f, open("bad.zt", "wb") as g:
    g.write(f.read().replace(b"\0\1\1\1", b"\0\1\2\1", 1))
EOF
for to in safetensors ztensor "ztensor --format-version 2"; do
    "$HEFT" convert --force bad.zt out.bin --to $to; echo "to a file: $?"
    "$HEFT" convert bad.zt - --to $to >pipe.bin; echo "to a pipe: $?, $(wc -c <pipe.bin) bytes"
    "$HEFT" convert --force --drop m bad.zt out.bin --to $to; echo "without m: $?"
    "$HEFT" convert --drop m bad.zt - --to $to >pipe.bin; echo "to a pipe: $?"
    cmp pipe.bin out.bin
done
"$HEFT" convert --force --no-verify bad.zt out.bin --to safetensors; echo "not verified: $?"
