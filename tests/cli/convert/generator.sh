$HEFT convert --generator 'train.py 1.4' small.safetensors a.zt
$PYTHON -c 'print(b"train.py 1.4" in open("a.zt", "rb").read())'
$HEFT info a.zt | grep Generator; $HEFT info --json a.zt | grep -o '"generator": *"[^"]*"'
$HEFT convert a.zt b.zt && $PYTHON -c 'print(b"train.py 1.4" in open("b.zt", "rb").read())'
$HEFT convert --generator x a.zt a.mag
$HEFT convert --generator x --strict --format-version 1.2 a.zt c.zt; echo $?; ls c.zt 2> /dev/null
$HEFT convert --generator "$(printf '\377')" a.zt d.zt; echo $?
