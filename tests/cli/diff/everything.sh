$PYTHON -c '
from samples import *
write_safetensors("a.safetensors", {
    "same": ("F32", [2], f32(1, NAN)), "type": ("F32", [1], f32(1)), "shape": ("F32", [2], f32(1, 2)),
    "value": ("F32", [4], f32(1, 2, 3, 0)), "wide": ("I64", [2], i64(2**62, 1)),
    "bool": ("BOOL", [2], b"\0\1"), "zero": ("F32", [1], f32(0)), "gone": ("U8", [1], b"y")})
write_safetensors("b.safetensors", {
    "same": ("F32", [2], f32(1, NAN)), "type": ("I32", [1], b"\1\0\0\0"), "shape": ("F32", [1, 2], f32(1, 2)),
    "value": ("F32", [4], f32(1, 2.5, NAN, 1)), "wide": ("I64", [2], i64(2**62 + 1, 1)),
    "bool": ("BOOL", [2], b"\1\1"), "zero": ("F32", [1], f32(-0.0)), "new\n": ("U8", [1], b"x")})'
$HEFT diff a.safetensors b.safetensors; echo $?
$HEFT diff --json a.safetensors b.safetensors; echo $?
