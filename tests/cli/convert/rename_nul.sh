# An expression leaves a name with a zero byte as it is; pairs cannot name such a name either.
$PYTHON - <<'P'
import samples
samples.write_safetensors("has_nul.safetensors", {"a\0b": ("F32", [1], samples.f32(1)),
                                                  "ab": ("F32", [1], samples.f32(2))})
P
$HEFT convert --rename 's/b/c/' has_nul.safetensors out.safetensors
$HEFT ls out.safetensors
