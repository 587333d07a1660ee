$HEFT convert --cast f32 small.safetensors m.mag
$HEFT edit --set epoch=3 --set rate=0.5 --set done=true m.mag
$HEFT edit --set epoch=4 --set rate=2 m.mag
$HEFT info --json m.mag | grep -o '"metadata": {[^}]*}'
$HEFT edit --set last=1 --set last=2 m.mag
$HEFT info m.mag | grep last
