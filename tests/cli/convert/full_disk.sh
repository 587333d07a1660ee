ln -s /dev/full full.mag
$HEFT convert small.safetensors full.mag
