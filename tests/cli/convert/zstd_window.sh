# A frame with a window above the limit of 128 MiB, as zstd --long writes, is refused as unsupported,
# with the size of the window and the offset, by every command that decodes the part.
"$HEFT" convert --compress zstd large.safetensors good.zt
"$PYTHON" - <<'EOF'
data = open("good.zt", "rb").read()
at = data.index(b"\x28\xb5\x2f\xfd")
assert data[at + 4] == 0x60  # a single segment, whose size in 2 bytes is the window
# A window of 2^31 bytes, and the id 0 of a dictionary in 1 byte: there is none.
open("long.zt", "wb").write(data[:at + 4] + bytes([1, 21 << 3, 0]) + data[at + 7:])
EOF
"$HEFT" ls long.zt >/dev/null; echo "ls: $?"
"$HEFT" cat long.zt grid >/dev/null; echo "cat: $?"
"$HEFT" hash long.zt; echo "hash: $?"
"$HEFT" convert long.zt out.safetensors; echo "convert: $?"
"$HEFT" convert --to safetensors long.zt - | wc -c
"$HEFT" convert long.zt out.zt; echo "convert: $?"
ls out.* 2>/dev/null
"$HEFT" verify long.zt; echo "verify: $?"
