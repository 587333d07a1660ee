"""Element types: names in safetensors, in Heft, and in numpy and torch."""

# (name in safetensors, name in Heft, name in numpy and torch), in the order in which safetensors
# writes tensors, the last first.
_ROWS = (
    ("BOOL", "bool", "bool"), ("F4", "f4_e2m1", "float4_e2m1fn_x2"), ("U8", "u8", "uint8"),
    ("I8", "i8", "int8"), ("F8_E5M2", "f8_e5m2", "float8_e5m2"),
    ("F8_E4M3", "f8_e4m3fn", "float8_e4m3fn"), ("F8_E8M0", "f8_e8m0", "float8_e8m0fnu"),
    ("F8_E4M3FNUZ", "f8_e4m3fnuz", "float8_e4m3fnuz"),
    ("F8_E5M2FNUZ", "f8_e5m2fnuz", "float8_e5m2fnuz"), ("I16", "i16", "int16"),
    ("U16", "u16", "uint16"), ("F16", "f16", "float16"), ("BF16", "bf16", "bfloat16"),
    ("I32", "i32", "int32"), ("U32", "u32", "uint32"), ("F32", "f32", "float32"),
    ("C64", "c64", "complex64"), ("F64", "f64", "float64"), ("I64", "i64", "int64"),
    ("U64", "u64", "uint64"))

CODES = {heft: code for code, heft, _ in _ROWS}
HEFT = {code: heft for code, heft, _ in _ROWS}
OF_PYTHON = {python: code for code, _, python in _ROWS}
OF_PYTHON["float8_e8m0"] = "F8_E8M0"
ORDER = {heft: i for i, (_, heft, _) in enumerate(_ROWS)}


def code_of(tensor):
    """Return the name in safetensors; Heft's name for a type that safetensors has not."""
    return CODES.get(tensor.dtype, tensor.dtype)
