$HEFT convert --cast f32 --set a=1 --set b:f64=0.5 small.safetensors m.mag
$HEFT edit --set a:f64=2 --set b:f64=nan --set c:f64=-inf --set d:f64=inf m.mag
$HEFT info --json m.mag | grep -o '"metadata": {[^}]*}'
$HEFT verify m.mag
$HEFT convert --format-version 1.2 m.mag m.zt
$HEFT info --json m.zt | grep -o '"metadata": {[^}]*}'
$HEFT edit --set a:u8=300 m.mag
$HEFT edit --set a:str=text m.mag
