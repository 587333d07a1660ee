# A type after the key; a colon that no type follows belongs to the key, and the last one counts.
show() { $HEFT info --json "$1" | $PYTHON -c 'import json, sys
def refuse(word): raise SystemExit("not JSON: " + word)
print(json.dumps(json.load(sys.stdin, parse_constant=refuse)["metadata"], sort_keys=True))'; }
$HEFT convert --set i:i64=-7 --set u:u64=18446744073709551615 --set f:f64=1 --set g:f32=1.1 \
    --set b:bool=true --set s:str=5 --set q:str='"x"' --set n:null= --set a:b:c=2 --set k:str:str=z \
    --set url:http://h=1 --format-version 1.2 small.safetensors t.zt
show t.zt
$HEFT convert --set nan:f64=nan --set up:f64=inf --set down:f64=-inf --set i:i64=3 --set t=1 small.safetensors m.mag
show m.mag
$HEFT info m.mag | grep -A3 Metadata
$PYTHON - m.mag <<'END'
import math, struct, sys
data = open(sys.argv[1], "rb").read()
at, found = 24, {}
for _ in range(struct.unpack_from("<I", data, 16)[0]):
    kind, bits, length = struct.unpack_from("<I8sI", data, at)
    key = data[at + 16:at + 16 + length].decode()
    found[key] = struct.unpack("<q" if kind == 1 else "<d", bits)[0]
    at += 16 + length
print(found)
END
echo "-- a plain nan stays text, which .mag cannot store"
$HEFT convert --set nan=nan --force small.safetensors m.mag
echo "-- refused"
for bad in i:i8=128 i:i8=-129 i:i64=9223372036854775808 i:i64=1.5 i:i32= i:i32=0x10 u:u64=-1 \
    u:u64=18446744073709551616 u:u16=65536 f:f32=1e39 f:f64=1e999 f:f64=x f:f64=0x1p3 f:f64=nan1 b:bool=1 \
    n:null=0 :i64=5; do
    $HEFT convert --set "$bad" small.safetensors x.zt
    echo $?
done
[ ! -e x.zt ]
