# The file is replaced by one with more tensors after new ids were chosen: the edit says so.
$HEFT convert two.safetensors three.bpk
$HEFT convert --keep ids two.safetensors one.bpk
$PYTHON - <<'P'
import fcntl, os, subprocess
FULL = 4096  # bytes of a pipe: a longer warning blocks heft between the choice of ids and the edit
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, FULL)
renames = [w for i in range(10) for w in ("--rename", f"s/{'x' * 4000}{i}/y/")]
p = subprocess.Popen([os.environ["HEFT"], "edit", "--new-ids", *renames, "one.bpk"], stderr=writer)
os.close(writer)
text = os.read(reader, 1)
os.replace("three.bpk", "one.bpk")
while piece := os.read(reader, 65536):
    text += piece
print(p.wait(), text.decode().splitlines()[-1])
P
$HEFT ls one.bpk
