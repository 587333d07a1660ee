# A tensor without parts has neither bytes nor an offset; when sorting by offset, it comes last.
PYTHONPATH=$CASES/../py $PYTHON -c '
import gen_ztensor1
f = gen_ztensor1.File("1.2")
tensors = {"empty": f.tensor("f32", (4,), "x.own", {}), "whole": f.dense(("whole", "u8", (4,), b"abcd"))}
open("m.zt", "wb").write(f.end(f.root(tensors)))'
$HEFT ls -l --sort offset m.zt
$HEFT ls --json --sort offset m.zt
$HEFT hash m.zt
