$PYTHON - <<'END'
import sys, os
sys.path.insert(0, os.environ["CASES"])
import samples
for rank in 6, 7:
    samples.write_safetensors("rank%d.safetensors" % rank, {"w": ("F32", [1] * rank, samples.f32(1))})
END
$HEFT convert rank6.safetensors six.mag
$HEFT convert rank7.safetensors seven.mag
$HEFT convert --strict rank7.safetensors strict.mag; echo $?; ls strict.mag 2>/dev/null
$HEFT ls seven.mag
