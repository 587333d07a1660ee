# That IN is missing is said before what is wrong with OUT.
$HEFT convert missing.mag two.safetensors; echo "= $?"
$HEFT convert missing.mag out.unknown; echo "= $?"
