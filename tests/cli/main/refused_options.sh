# Options that exclude each other, and values that an option does not take, are refused before any
# file is written.
try() { echo "-- $*"; $HEFT "$@"; echo "exit $?"; } 2>&1
try verify --share 3/2 two.safetensors
try verify --share 1/2 two.safetensors none.safetensors
try verify --share 1/2 --signature two.sig two.safetensors
try verify --share 1/2 --hub two.safetensors
try verify --share 1/2 --quick two.safetensors
try verify --join record --quick two.safetensors
try verify --share 1/2 --profile minilm two.safetensors
try verify --signature two.sig --hub two.safetensors
try verify --signature two.sig --profile minilm two.safetensors
try verify --signature two.sig --quick two.safetensors
try verify --signature two.sig --public-key key.pem two.safetensors none.safetensors
try verify --ca trusted.pem two.safetensors
try verify --certificate own.pem two.safetensors
try verify --key '' two.safetensors
try verify --key state two.safetensors
try verify --hub --profile minilm two.safetensors
try verify --hub --quick two.safetensors
try convert --to gguf --share 1/2 two.safetensors -
try convert --to gguf --finish two.safetensors -
try convert --special cls=1 two.safetensors out.weights
try convert --special cls=1 two.safetensors out.zt
for level in gzip zst zstdx zstd: zstd:3x zstd:0 zstd:23 zstd:-1; do
    try convert --compress $level two.safetensors out.zt
done
try convert --compress zstd:22 two.safetensors best.zt
try convert --compress zstd:1 two.safetensors fast.zt
try convert --align 3 two.safetensors out.zt
try convert --align 4294967296 two.safetensors out.zt
try convert --dry-run --align 2147483648 two.safetensors out.zt
try convert --threads 1025 two.safetensors out.zt
try convert --threads 1024 two.safetensors threads.zt
try convert --share 1/2 --new-ids two.safetensors out.bpk
try convert --finish --fill-ids two.safetensors out.bpk
try convert --share 1/2 --new-ids --id-seed 7 two.safetensors seeded.bpk
try convert --share 1/2 --finish two.safetensors out.zt
try convert --dry-run --share 1/2 two.safetensors out.zt
try convert --dry-run --finish two.safetensors out.zt
for other in --share=1/2 --finish --dry-run --resume; do
    try convert --abort $other two.safetensors out.zt
done
for other in --share=1/2 --finish --dry-run; do
    try convert --resume $other https://localhost/two.safetensors out.zt
done
for path in 8000 4094 4090; do
    long=$($PYTHON -c "print('r' * $path)")
    echo "-- records with $path letters"
    $HEFT verify --share 1/2 -o $long two.safetensors 2>&1 | tail -c 60
    $HEFT verify --join $long two.safetensors 2>&1 | tail -c 60
done
$HEFT verify --share 1/1 -o whole two.safetensors; head -n 4 whole.1 > cut.1; sed 's/share 1 1/share 1 0/' whole.1 > none.1
for record in whole cut none; do
    try verify --join $record two.safetensors
done
try split --count 4097 two.safetensors out
try split --count 4096 two.safetensors out
try split --to nothing --count 2 two.safetensors out
try ls --json=yes two.safetensors
try ls -z two.safetensors
try ls
try ls --access fast two.safetensors
try verify --share 1/2 --join record two.safetensors
try verify --output record two.safetensors
try hash --share 1/2 two.safetensors
try ids --model none two.safetensors
try verify --signature none --public-key key.pem two.safetensors
try sbom --force -o bert two.safetensors
long=$($PYTHON -c "print('r' * 8000)")
$HEFT ls $long/file 2>&1 | tail -c 60
try diff two.safetensors
try help nothing
try ls -m
try ls --byte=1 two.safetensors
try cat --npy=x two.safetensors ids
ls
