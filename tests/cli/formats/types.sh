$HEFT formats --types | head -24
$HEFT formats --types --raw | wc -l
$HEFT formats --types --json | $PYTHON -c "import json, sys; print(json.load(sys.stdin)['types'][11])"
