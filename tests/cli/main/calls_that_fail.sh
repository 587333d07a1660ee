# Reads, random numbers, links, pipes and temporary files that fail are named, and nothing is left.
$PYTHON - <<'P'
import os, subprocess, sys
import traced
from samples import write_safetensors
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)
if "MSAN_OPTIONS" in os.environ:
    sys.exit(print("the memory sanitizer does not see what libcrypto writes") or 77)
HERE = os.getcwd() + "/"

def one_processor():
    """Leave one thread: strace counts the calls of each thread."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])

def fail(calls, *args, on=None, when="1+", error="EIO"):
    """Return exit status and message; only calls on the file `on` fail."""
    words = [HERE + a if a == on else a for a in args]
    rule = f"inject={calls}:error={error}:when={when}"
    code, text = traced.run([rule], *words, path=on, timeout=300, preexec_fn=one_processor)
    own = [line for line in text.splitlines() if not line.startswith("==")]  # a sanitizer's lines
    return code, "\n".join(own).replace(HERE, "").split(" (at byte")[0]

READ = "pread64,preadv"
write_safetensors("in.safetensors", {n: ("I8", [600000], bytes(600000)) for n in "ab"})
def convert(*args):
    subprocess.run([traced.HEFT, "convert", *args], check=True)

convert("--digest", "crc32c", "in.safetensors", "in.zt")
print("doctor", *fail(READ, "doctor", "in.zt", on="in.zt"))
SAMPLES = {"on": "in.zt", "when": "5+"}  # the reads before identify the file
print("verify", *fail(READ, "verify", "--share=1/2", "--access=read", "in.zt", **SAMPLES))
print("ids", *fail("getrandom", "convert", "--new-ids", "in.zt", "out.bpk"))
# key and password are tried after the files are listed
SIGN = ("sign", "--key", "bert/vocab.txt", "bert")
for text in sorted({fail("readlink", *SIGN, when=n)[1] for n in range(1, 16)}):
    print("sign", text)
os.mkfifo("config.json")
CONFIG = ("convert", "--config", "config.json", "in.zt", "out.gptrs")
print("config", *fail("openat", *CONFIG, on="config.json", error="EMFILE"))
os.remove("config.json")
# a tensor is decoded and transposed in a temporary file without a name
write_safetensors("wide.safetensors", {"w": ("U8", [17000, 1000], bytes(17000000))})
convert("--compress=zstd", "wide.safetensors", "wide.zt")
WIDE = ("convert", "--access=read", "--transpose=*", "wide.zt", "out.npy")
print("temporary file", *fail("pwrite64", *WIDE, when="2+", error="ENOSPC"))
subprocess.run(["strace", "-o", "calls", "-e", "trace=mmap", traced.HEFT, *WIDE],
               preexec_fn=one_processor, env=traced.environment(), check=True)
os.remove("out.npy")
IT = ", 17000000, PROT_READ, MAP_SHARED"
mapped = [n for n, line in enumerate(open("calls"), 1) if IT in line]
print("its mapping", *[fail("mmap", *WIDE, when=str(n), error="ENOMEM") for n in mapped])
P
code=$?; [ $code = 0 ] || exit $code
ls -d out.* bert/model.sig 2> /dev/null || echo nothing is left
