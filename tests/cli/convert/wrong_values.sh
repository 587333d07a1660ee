c() { $HEFT convert "$@" small.safetensors a.mag; echo $?; }
c --align 3
c --align x
c --threads 100000
c --digest md5
c --compress lzma
c --compress zstd:99
c --format-version 7
c --compress zstd
c --digest crc32c
