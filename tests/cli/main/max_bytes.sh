# The limit on the bytes that a command reads: each command that reads data, within the limit and beyond it.
# Threads decide which tensor, of which file, is one too many.
any_tensor() { sed "s/tensor '[^']*', [0-9]* bytes: //"; }
any_file() { sed "s/^heft: [a-z.]*: tensor '[^']*', [0-9]* bytes: /heft: /"; }
run() { $HEFT "$@" > out 2> told; echo "$?: $*"; cat told >&2; }
$HEFT convert --compress zstd --digest sha256 small.safetensors z.zt
for command in "ls" "info" "ids" "verify --quick"; do
    run $command --max-bytes 1 z.zt
done
for limit in 10 1MB; do
    run cat --max-bytes $limit z.zt w
    run show --max-bytes $limit z.zt w
    run stats -j 1 --max-bytes $limit z.zt
    run hash -j 1 --max-bytes $limit z.zt
    run verify -j 1 --max-bytes $limit z.zt
    run diff --max-bytes $limit z.zt small.safetensors 2>&1 | any_file
    run convert -f --max-bytes $limit z.zt out.npz
    run convert -f --max-bytes $limit --transpose w z.zt t.safetensors
    run split -f --max-bytes $limit --count 2 --to safetensors z.zt parts
    run merge -f --max-bytes $limit z.zt out.safetensors
    run append --max-bytes $limit --rename 's/^/x./' small.safetensors z.zt
    $HEFT convert -f small.safetensors e.npz
    run edit --max-bytes $limit --rename w=longer e.npz
done
for command in "stats" "diff small.safetensors"; do # without checksums no stream would be needed
    run $command --no-verify --max-bytes 10 small.safetensors 2>&1 | any_tensor
done
ls *.npz *.safetensors parts
echo "-- shares and reports"
$HEFT convert --compress zstd --keep w small.safetensors one.zt
for command in "verify --share 1/1" "report --force"; do
    run $command --max-bytes 10 one.zt
done
$HEFT convert bert one.weights
run convert --special pad=1 --max-bytes 10 one.weights two.weights
ls report.html two.weights 2> /dev/null
echo "-- all inputs together"
run hash --max-bytes 40 small.safetensors
run diff --max-bytes 40 small.safetensors small.safetensors 2>&1 | any_tensor
for bad in 0 -1 x ""; do
    run ls --max-bytes "$bad" small.safetensors
done
