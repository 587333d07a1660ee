$PYTHON -c 'import samples
for kind in "attributes", "items":
    samples.write_nested(kind + ".pt", kind)'
for kind in attributes items; do
    $HEFT ls --key model $kind.pt
    $HEFT ls --key model.head $kind.pt
    $HEFT ls --key model.tail $kind.pt; echo $?
done
