umask 077
mode() { $PYTHON -c 'import os, sys
print(*("%s %o" % (os.path.basename(p), os.stat(p).st_mode & 0o7777) for p in sys.argv[1:]))' "$@"; }
cp small.safetensors a.safetensors && chmod 640 a.safetensors
$HEFT convert --force small.safetensors a.safetensors && mode a.safetensors
chmod 444 a.safetensors
$HEFT convert --force --no-sync small.safetensors a.safetensors && mode a.safetensors
$HEFT convert small.safetensors b.bpk && mode b.bpk
chmod 664 b.bpk
$HEFT merge --force a.safetensors b.bpk && mode b.bpk
$HEFT edit --set note="$(printf '%0600d' 7)" b.bpk && mode b.bpk
$HEFT split --count 2 small.safetensors parts && chmod 644 parts/*
$HEFT split --count 2 --force small.safetensors parts && mode parts/*
