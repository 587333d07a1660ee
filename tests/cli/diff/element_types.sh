# Values of different types are compared as numbers.
$PYTHON -c '
from samples import *
import struct
def f64(*v): return struct.pack("<%dd" % len(v), *v)
write_safetensors("a.safetensors", {
    "same": ("F32", [2, 2], f32(1, -2, 0.5, INF)), "half": ("F32", [3], f32(1, 2, 3)),
    "wide": ("I64", [3], i64(2**53, 2**53 + 1, -7)), "none": ("F32", [0], b""),
    "text": ("F32", [1], f32(NAN)), "bool": ("BOOL", [2], b"\0\1")})
write_safetensors("b.safetensors", {
    "same": ("BF16", [2, 2], bytes.fromhex("803f00c0003f807f")), "half": ("F16", [3], bytes.fromhex("003c01400042")),
    "wide": ("F64", [3], f64(2**53, 2**53, -7.5)), "none": ("F64", [0], b""),
    "text": ("F64", [1], f64(NAN)), "bool": ("U8", [2], b"\0\2")})'
$HEFT diff a.safetensors b.safetensors; echo $?
$HEFT diff --ignore-dtype a.safetensors b.safetensors; echo $?
$HEFT diff --ignore-dtype --ulp 1 a.safetensors b.safetensors; echo $?
$HEFT diff --ignore-dtype --atol 1 -v a.safetensors b.safetensors; echo $?
$HEFT diff --ignore-dtype --json b.safetensors a.safetensors; echo $?
$HEFT diff -q a.safetensors b.safetensors; echo $?
$HEFT diff -q --ignore-dtype --atol 1 a.safetensors b.safetensors; echo $?
