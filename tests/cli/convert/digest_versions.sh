for d in crc32c sha256 xxh3; do
    for v in 1.2 2; do
        $HEFT convert --format-version $v --digest $d small.safetensors $d-$v.zt
        echo "$d in version $v: $?"
        [ ! -e $d-$v.zt ] || $HEFT ls --json $d-$v.zt | grep -o '"digest": "[a-z0-9]*:' | sort -u
    done
done
