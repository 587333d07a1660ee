# One line for each rule, with a count and two examples; -v lists all; -q prints no warnings.
$PYTHON -c "
from samples import *
write_safetensors('many.safetensors', {'s%d' % i: ('F32', [], f32(i)) for i in range(150)}, {'k%d' % i: 'v' for i in range(40)})"
$HEFT convert many.safetensors a.mag; echo "= $?"
$HEFT convert -v many.safetensors b.mag 2>&1 | cut -d : -f 1-4 | sort | uniq -c
$HEFT convert -q many.safetensors c.mag; echo "= $?"
$HEFT convert --strict -q many.safetensors d.mag; echo "= $?"
$HEFT convert --messages json many.safetensors e.mag 2>&1 | grep -c second
