# Numbers that no type holds are kept as text, digit by digit.
$HEFT convert small.safetensors m.zt
$HEFT edit --set a=99999999999999999999 --set b=-9223372036854775809 --set c=1e400 --set d=18446744073709551615 --set e=1e308 m.zt
$HEFT info --json m.zt | grep -o '"metadata": {[^}]*}'
