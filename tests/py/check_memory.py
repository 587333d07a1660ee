#!/usr/bin/env python3
"""check_memory.py HEFT: convert tensors that are larger than memory, whatever their order.

NumPy checks the results. TAP on stdout; skipped without NumPy."""
import contextlib
import functools
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

MIB = 1 << 20
MAX_MEMORY = 64 * MIB
ROWS, COLUMNS = 8192, 8200  # 256.25 MiB of f32


@functools.lru_cache
def large(order):
    a = np.empty((ROWS, COLUMNS), dtype="<f4", order=order)
    a[:] = np.arange(COLUMNS) % 251 + (np.arange(ROWS) % 13)[:, None] * 251
    return a


def save(path, **arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        for name, a in arrays.items():
            with z.open(name + ".npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, a)


def peak(*args, **env):
    """Run Heft; return (exit status, stderr, peak of anonymous memory in bytes)."""
    max_memory = 0
    with tempfile.TemporaryFile() as messages, subprocess.Popen(
        [HEFT, *map(str, args)], stdout=subprocess.DEVNULL, stderr=messages,
            env=os.environ | env) as p:
        while p.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                for line in pathlib.Path(f"/proc/{p.pid}/status").read_text().splitlines():
                    max_memory = max(max_memory,
                               int(line.split()[1]) * 1024 if line.startswith("RssAnon") else 0)
            time.sleep(0.001)
        messages.seek(0)
        return p.returncode, messages.read().decode(), max_memory


def memory_faults(args, max_memory=MAX_MEMORY, **env):
    code, messages, seen = peak(*args, **env)
    if code:
        yield f"ended with {code}: {messages}"
    if seen > max_memory:
        yield f"took {seen // MIB} MiB"
    if not seen:
        yield "no memory was measured"


def tensor(path, name):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        t = json.loads(f.read(size))[name]
    return np.memmap(path, "<f4", "r", 8 + size + t["data_offsets"][0], tuple(t["shape"]))


def leftover_files(folder, *known):
    left = sorted(set(os.listdir(folder)) - set(known))
    return [f"{left} are left"] if left else []


def check_fortran_order(root, temporary):
    """Convert two deflated tensors in Fortran order, for two threads."""
    a = large("F")
    save(root / "f.npz", a=a, b=a[:, :4100])
    yield from memory_faults(["convert", root / "f.npz", root / "f.safetensors"], TMPDIR="/nowhere")
    if not np.array_equal(tensor(root / "f.safetensors", "a"), a) or not np.array_equal(
            tensor(root / "f.safetensors", "b"), a[:, :4100]):
        yield "the result differs"
    (root / "f.safetensors").unlink()
    yield from memory_faults(["stats", root / "f.npz", "a"], TMPDIR=str(temporary))
    yield from memory_faults(
        ["convert", root / "f.npz", root / "f.zt", "--keep", "a", "--compress", "zstd"])
    yield from leftover_files(root, "f.npz", "f.zt", "tmp")


def check_transposing(root, temporary):
    """Transpose tensors compressed with zstd or deflate."""
    a = large("C")
    np.save(root / "c.npy", a)
    yield from memory_faults(["convert", root / "c.npy", root / "c.zt", "--compress", "zstd"])
    (root / "c.npy").unlink()
    name = json.loads(subprocess.check_output([HEFT, "ls", "--json",
                                               root / "c.zt"]))["tensors"][0]["name"]
    yield from memory_faults(["convert", "--transpose", "*", root / "c.zt", root / "t.safetensors"],
                      TMPDIR="/nowhere")
    if not np.array_equal(tensor(root / "t.safetensors", name), a.T):
        yield "the result differs"
    (root / "t.safetensors").unlink()
    yield from memory_faults(
        ["convert", "--transpose", "*", root / "f.npz", root / "t.safetensors", "--keep", "a"])
    if not np.array_equal(tensor(root / "t.safetensors", "a"), a.T):
        yield "the result of both conversions differs"
    (root / "t.safetensors").unlink()
    yield from leftover_files(root, "f.npz", "f.zt", "c.zt", "tmp")


def check_show(root, _):
    """Show compressed tensors; only Fortran order needs more than a few MiB."""
    shown = str(large("C"))
    name = json.loads(subprocess.check_output([HEFT, "ls", "--json",
                                               root / "c.zt"]))["tensors"][0]["name"]
    for path, tensor_name, max_memory in ((root / "c.zt", name, 8 * MIB), (root / "f.npz", "a",
                                                                           MAX_MEMORY)):
        if subprocess.check_output([HEFT, "show", path, tensor_name], text=True) != shown + "\n":
            yield f"{path.name}: NumPy shows other values"
        yield from memory_faults(["show", path, tensor_name], max_memory)


def check_dropped_parts(root, _):
    """Drop a large member that is not an array."""
    with zipfile.ZipFile(root / "parts.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        with z.open("a.npy", "w") as f:
            np.lib.format.write_array(f, np.arange(MIB, dtype="<f4"))
        with z.open("notes.bin", "w") as f:
            for _ in range(256):
                f.write(bytes(MIB))
    yield from memory_faults(["convert", root / "parts.npz", root / "parts.safetensors"])
    if not np.array_equal(tensor(root / "parts.safetensors", "a"), np.arange(MIB, dtype="<f4")):
        yield "the result differs"
    (root / "parts.safetensors").unlink()
    (root / "parts.npz").unlink()


def check_stream(root, temporary):
    """Convert into a pipe; temporary files must go to TMPDIR."""
    a = large("F")
    with subprocess.Popen(
        [HEFT, "convert", "--to", "npz", root / "f.npz", "/dev/stdout", "--keep", "a"],
            stdout=subprocess.PIPE, env=os.environ | {"TMPDIR": str(temporary)}) as p, open(
                root / "p.npz", "wb") as f:
        shutil.copyfileobj(p.stdout, f)
    if not np.array_equal(np.load(root / "p.npz")["a"], a):
        yield "the result differs"
    (root / "p.npz").unlink()
    yield from leftover_files(temporary)


def write_weights(folder, size, prefix):
    """Write four matrices of f32, together `size` bytes."""
    rows = size // 4 // 4 // 8192
    data = (np.random.default_rng(1).standard_normal((64, 8192)) / 50).astype("<f4").tobytes()
    of_one, header = rows * 8192 * 4, {}
    for i in range(4):
        header[f"{prefix}{i}.ffn_up.weight"] = {"dtype": "F32", "shape": [rows, 8192],
                                                "data_offsets": [i * of_one, (i + 1) * of_one]}
    text = json.dumps(header).encode()
    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _ in range(size // len(data)):
            f.write(data)


def check_quantising(root, _, size=64 * MIB):
    """Quantise by mixes of GGUF and by schemes, and decode what they have written."""
    write_weights(root / "in", size, "blk.")
    llama = ["--set", "general.architecture=llama", "--set", "llama.block_count=4"]
    for method in ("q4_k_m", "q3_k_s", "fp8", "mxfp4", "nvfp4", "int4"):
        out = root / "out" / ("m.gguf" if method[0] == "q" else "m.safetensors")
        out.parent.mkdir()
        own = llama if method[0] == "q" else []
        back = ["--cast", "f32"] if own else ["--dequantize"]
        for args in (["--quantize", method, *own, root / "in", out],
                     ["--verify-quality", "--quantize", method, *own, "-f", root / "in", out],
                     [*back, out, root / "back.safetensors"]):
            for fault in memory_faults(["convert", *args], 16 * MIB):
                yield f"{args[0]} {method}: {fault}"
        (root / "back.safetensors").unlink()
        shutil.rmtree(root / "out")
    shutil.rmtree(root / "in")


def check_columns_decoded(root, _, layers=2):
    """Decode schemes whose rows become columns."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    import quantised
    for title, weight, parts, settings in quantised.models():
        if title in ("gptq", "awq", "pack-quantized"):
            quantised.write_model(root / title, layers, weight, parts, settings)
            for fault in memory_faults(["convert", "--dequantize=f32", root / title,
                                        root / "back.safetensors"], 32 * MIB):
                yield f"{title}: {fault}"
            (root / "back.safetensors").unlink()
            shutil.rmtree(root / title)


def one_error(p, *words):
    lines = p.stderr.decode().splitlines()
    if p.returncode != 4:
        yield f"ended with {p.returncode}, not 4: {lines}"
    if len(lines) != 1 or any(w not in lines[0] for w in words):
        yield f"said {lines}, not once {words}"


def check_no_directory(root, _):
    p = subprocess.run([HEFT, "hash", root / "f.npz"], capture_output=True,
                       env=os.environ | {"TMPDIR": "/no/such"}, check=False)
    yield from one_error(p, "/no/such", "No such file or directory")


def no_large_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 * MIB, 100 * MIB))


def check_limit(root, temporary):
    p = subprocess.run([HEFT, "hash", root / "f.npz"], capture_output=True,
                       env=os.environ | {"TMPDIR": str(temporary)}, preexec_fn=no_large_files,
                       check=False)
    yield from one_error(p, str(temporary), "File too large")
    yield from leftover_files(temporary)


def check_full(root, temporary):
    """Fill a disk of 48 MiB with the output, and one of 16 MiB with the temporary file."""
    a = np.asfortranarray(np.arange(32 * MIB // 4, dtype="<f4").reshape(2048, -1) % 64)
    save(root / "s.npz", a=a)
    for command, words in ((["convert", root / "s.npz",
                             temporary / "s.safetensors"], ["s.safetensors", "No space left"]),
                           (["hash", root / "s.npz"], ["No space left"])):
        size = "48m" if command[0] == "convert" else "16m"
        script = (f'mount -t tmpfs -o size={size} none "$0" || exit 77; export TMPDIR="$0"; '
                  '"$@"; code=$?; ls -A "$0" >&2; exit $code')
        p = subprocess.run(["unshare", "-rm", "sh", "-c", script, temporary, HEFT, *command],
                           capture_output=True, check=False)
        if p.returncode == 77 or b"unshare" in p.stderr:
            print("# no disk can be made here:", p.stderr.decode().strip())
            return
        yield from one_error(p, *words)


def check_killed(root, _):
    """Kill Heft while the temporary file exists."""
    for _ in range(5):
        p = subprocess.Popen([HEFT, "convert", root / "f.npz", root / "k.safetensors"])
        seen = 0
        while p.poll() is None and not seen:
            with contextlib.suppress(OSError):
                links = [
                    os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{p.pid}/fd")
                ]
                seen = sum("(deleted)" in link for link in links) >= 2
        p.kill()
        p.wait()
        yield from leftover_files(root, "f.npz", "f.zt", "c.zt", "s.npz", "tmp",
                                *([] if seen else ["k.safetensors"]))
        if seen:
            return
        (root / "k.safetensors").unlink(missing_ok=True)
    yield "no temporary file was seen"


CHECKS = {
    "Fortran order is converted in bounded memory": check_fortran_order,
    "matrices are transposed in bounded memory": check_transposing,
    "show needs memory for the shown values only": check_show,
    "large parts are dropped": check_dropped_parts,
    "conversion into a pipe": check_stream,
    "models are quantised and decoded in bounded memory": check_quantising,
    "rows that become columns are decoded in bounded memory": check_columns_decoded,
    "a missing TMPDIR is reported": check_no_directory,
    "a limit on file sizes is reported": check_limit,
    "a full disk is reported": check_full,
    "a killed conversion leaves no files": check_killed,
}


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        root = pathlib.Path(folder)
        temporary = root / "tmp"
        temporary.mkdir()
        return tap.report((name, list(check(root, temporary))) for name, check in CHECKS.items())


HEFT = sys.argv[1]
sys.exit(main())
