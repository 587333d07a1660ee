#!/usr/bin/env python3
"""check_sandbox.py HEFT PROBE: the sandbox refuses only the calls of an attacker.

PROBE is the module of sandbox_probe.c, which is preloaded and attempts forbidden calls; under
--no-sandbox every attempt must succeed.  Commands with unusual paths must have the same results
with and without the sandbox.  TAP on stdout."""
import contextlib
import ctypes
import errno
import fcntl
import functools
import http.server
import io
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import tap  # noqa: E402

HEFT, PROBE = map(os.path.abspath, sys.argv[1:3])
REFUSED = {errno.EACCES, errno.EPERM}
CREATE_RULESET = 444
CANNOT = 5  # exit status: this build lacks something
# Attempts that Landlock refuses; seccomp refuses all remaining attempts.
BY_PATH = {
    "read-passwords", "read-file", "write-file", "list-folder", "create-file", "create-unnamed",
    "create-folder", "create-link", "rename-file", "remove-file", "cut-file", "create-here",
    "write-input", "write-device"
}
# Calls that need privileges, or that a system may refuse to everybody.
PRIVILEGED = {
    "type-command", "type-command-high", "open-handle", "open-filesystem", "mount-filesystem",
    "move-filesystem", "change-filesystem", "change-root", "name-host", "name-domain",
    "load-filter", "measure", "catch-faults", "make-ring", "packets", "share-queue",
    "queue-signal", "change-inherited-owner"
}
# The C library takes an older call.
AS_IF_MISSING = {"clone3-namespace"}


def has_landlock():
    return ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, 1) > 0


def has_seccomp():
    return os.path.exists("/proc/sys/kernel/seccomp/actions_avail")


def safetensors(*names, elements):
    size = 4 * elements
    header = json.dumps({
        name: {"dtype": "F32", "shape": [elements], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(names)
    }).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + bytes(size * len(names))


def column_major(rows, columns):
    """A compressed NumPy archive whose elements are needed in another order."""
    header = b"{'descr': '<f4', 'fortran_order': True, 'shape': (%d, %d), }" % (rows, columns)
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    data += bytes(4 * rows * columns)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        z.writestr(zipfile.ZipInfo("w.npy"), data, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


LARGE = column_major(3000, 2000)  # too large to be decoded in memory


def fill(top):
    """Write the inputs: models, a folder in a Hugging Face cache, links."""
    (top / "in").mkdir()
    (top / "in/a.st").write_bytes(safetensors("a", "c", elements=1 << 19))
    (top / "in/b.st").write_bytes(safetensors("b", elements=8))
    (top / "in/vocab.txt").write_text("[PAD]\nthe\n")
    (top / "link.st").symlink_to("in/a.st")
    (top / "one").mkdir()
    (top / "one/model.safetensors").write_bytes((top / "in/b.st").read_bytes())
    (top / "folder").symlink_to("one")
    hub = top / "hub/models--me--it"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots/main").mkdir(parents=True)
    for name in ("a.st", "vocab.txt"):
        (hub / "blobs" / name).write_bytes((top / "in" / name).read_bytes())
        link = hub / "snapshots/main" / name.replace("a.st", "model.safetensors")
        link.symlink_to(f"../../blobs/{name}")
    (top / "large.npz").write_bytes(LARGE)
    (top / "out").mkdir()
    (top / "tmp").mkdir()


# ---- attacks ----

# Every command that opens a file; inputs of commands with threads have several chunks.
ATTACKED = [
    ["ls", "-l", "in/a.st"], ["info", "in/a.st"],
    ["cat", "in/b.st", "b"], ["show", "in/a.st", "a"],
    ["convert", "-j2", "in/a.st", "out/o.zt"],
    ["convert", "-j2", "--to", "gguf", "in/a.st", "-"],
    ["convert", "--vocab", "/dev/fd/0", "--allow-loss", "in/a.st", "out/o.weights"],
    ["convert", "-j2", "--to", "gguf", "in/a.st", "/dev/null"],
    ["split", "-j2", "-c1", "in/a.st", "out/new"],
    ["merge", "-j2", "in/a.st", "in/b.st", "out/o.zt"],
    ["verify", "in/a.st", "in/b.st"],
    ["diff", "in/a.st", "link.st"], ["hash", "in/a.st"],
    ["ids", "in/a.st"], ["stats", "in/a.st"],
    ["append", "-j2", "in/b.st", "in/a.st"],
    ["edit", "--set", "k=v", "in/b.st"]
]
# Inputs on a server: a client may open sockets of TCP and UDP, and uses no inherited socket.
FETCHED = [["ls", "URL/in/a.st"], ["convert", "URL/in/a.st", "out/o.zt"]]
ALLOWED_TO_CLIENTS = {"make-socket"}
WITH_THREADS = {"convert", "split", "merge", "diff", "hash", "stats"}


def use_terminal(fd):
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def targets(outside):
    """Yield the targets of the attempts: environment and descriptors."""
    ends = os.openpty()
    victim = subprocess.Popen(["sleep", "1000"])
    with socket.socket(socket.AF_UNIX) as plain, open(outside / "victim") as file:
        names = {"SOCKET": plain.fileno(), "FILE": file.fileno(), "TERMINAL": ends[1]}
        env = {"HEFT_PROBE_" + k: str(v) for k, v in names.items()}
        try:
            yield env | {"HEFT_PROBE_VICTIM": str(victim.pid)}, list(names.values())
        finally:
            victim.kill()
            victim.wait()
            for fd in ends:
                os.close(fd)


def attack(args, top, outside):
    """{(thread, attempt): errno}, and the exit status."""
    read, write = os.pipe()
    with targets(outside) as (env, fds):
        env = os.environ | env | {
            "LD_PRELOAD": PROBE, "HEFT_PROBE_TELL": str(write), "HEFT_PROBE_DIR": str(outside),
            "TMPDIR": str(top / "tmp"), "HEFT_PROBE_INPUT": "in/a.st"
        }
        done = subprocess.run([HEFT, *args], cwd=top, env=env, pass_fds=[write, *fds],
                              input=b"the\n", stdout=subprocess.DEVNULL,
                              preexec_fn=lambda: use_terminal(fds[-1]))
    os.close(write)
    with os.fdopen(read) as told:
        rows = [line.split() for line in told]
    return {(thread, name): int(number) for thread, name, number in rows}, done.returncode


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def server(top):
    """Yield the address of a server of the files below a folder."""
    handler = functools.partial(Quiet, directory=top)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        try:
            yield "http://127.0.0.1:%d" % s.server_port
        finally:
            s.shutdown()


def refusals(args, seen, code, sandboxed):
    if code:
        yield f"ended with {code}"
    threads = {thread for thread, _ in seen}
    has_worker = args[0] in WITH_THREADS and args[-1] not in {"-", "/dev/null"}
    if "main" not in threads or (has_worker and "worker" not in threads):
        yield f"attempts were made in {sorted(threads)} only"
    for (thread, name), number in seen.items():
        if name == "write-input" and args[0] in {"append", "edit"}:
            continue  # FILE is in the same folder
        if name in ALLOWED_TO_CLIENTS and args in FETCHED:
            if number:
                yield f"{thread}: {name} was refused: {os.strerror(number)}"
            continue
        is_part = has_landlock() if name in BY_PATH else has_seccomp()
        refused = {errno.ENOSYS} if name in AS_IF_MISSING else REFUSED
        if sandboxed and is_part and number not in refused:
            yield f"{thread}: {name} was not refused: {os.strerror(number)}"
        if not sandboxed and number in REFUSED and name not in PRIVILEGED:
            yield f"{thread}: {name} fails without the sandbox, too: {os.strerror(number)}"


def attacks(args):
    for sandboxed in (True, False):
        with tempfile.TemporaryDirectory() as name:
            top, outside = pathlib.Path(name, "top"), pathlib.Path(name, "outside")
            for folder in (top, outside):
                folder.mkdir()
            fill(top)
            for file in ("secret", "victim"):
                (outside / file).write_text("x")
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(outside / "socket"))
                listening.listen()
                more = [] if sandboxed else ["--no-sandbox"]
                with server(top) as url:
                    words = [args[0], *more, *(a.replace("URL", url) for a in args[1:])]
                    seen, code = attack(words, top, outside)
            yield from refusals(args, seen, code, sandboxed)


# ---- ordinary use ----

# Shell commands, each run in a folder filled anew; "heft" is a function that adds --no-sandbox the
# second time.  If Heft refuses to open a pipe, ": <> pipe" opens it for the waiting program.
WORKING = {
    "relative paths": """cd out; heft ls ../in/a.st; heft ls ./../in//a.st""",
    "a path without a folder": """cd in; heft convert a.st c.zt; heft verify c.zt""",
    "links": """heft ls link.st; heft ls folder/model.safetensors; heft ls folder""",
    "a journal behind a link": """ln -s ../in/a.st out; heft ls out/a.st
        for suffix in heft-journal heft-replaced; do
            echo x > in/a.st.$suffix; heft ls out/a.st; done""",
    "a Hugging Face cache": """heft ls hub/models--me--it/snapshots/main
        heft ls hub/models--me--it/snapshots/main/model.safetensors
        cd hub/models--me--it/snapshots/main; heft convert . ../../../../out/o.weights""",
    "texts from pipes": """mkfifo pipe; cat in/vocab.txt > pipe &
        heft convert --vocab pipe --allow-loss in/a.st out/o.weights; : <> pipe; wait
        cat in/vocab.txt | heft convert --vocab /dev/fd/0 --allow-loss in/a.st out/p.weights""",
    "texts elsewhere": """mkdir text; cp in/vocab.txt text; ln -s text/vocab.txt v
        heft convert --vocab v --allow-loss in/a.st out/o.weights
        heft convert --vocab text --allow-loss in/a.st out/p.weights""",
    "standard input": """heft ls /dev/stdin < in/a.st; cat in/b.st | heft ls /dev/stdin
        exec 3< in/b.st; rm in/b.st; heft ls /dev/fd/3""",
    "devices and pipes as outputs": """heft convert --to zt in/b.st /dev/null
        heft convert --to ztensor in/b.st /dev/null
        heft convert --to ztensor in/b.st /dev/stdout | cksum
        heft convert --to ztensor in/b.st - | cksum
        mkfifo pipe; cksum < pipe &
        heft convert --to ztensor in/b.st pipe; : <> pipe; wait""",
    "standard output is a file": """heft convert --to ztensor in/b.st /dev/stdout > out/o
        heft convert --force --to ztensor in/b.st /dev/stdout > out/p
        heft convert --to ztensor in/b.st - > out/q""",
    "outputs that exist": """heft convert in/a.st out/o.zt; heft convert in/b.st out/o.zt
        chmod 640 out/o.zt; heft convert --force in/b.st out/o.zt
        ln -s out/o.zt l.zt; heft convert --force in/a.st l.zt
        ln -s nothing m.zt; heft convert --force in/a.st m.zt""",
    "outputs that cannot be": """heft convert in/a.st none/o.zt
        heft convert --to gguf in/a.st out
        heft merge in/a.st in/b.st none/o.zt; heft split --count 2 in/a.st none/new
        heft split --count 2 in/a.st in/b.st; heft convert in/b.st o.zt""",
    "no such input": """heft ls none; heft ls none/none; heft ls in/b.st/none; heft ls /proc/none
        heft ls ''; heft ls in; heft ls in/a.st""",
    "other things as inputs": """heft ls /dev/null; heft ls /dev; heft ls /proc/self/mem
        mkfifo p; heft ls p; heft ls in/b.st""",
    "a folder without a name": """here=$PWD; mkdir gone; cd gone; rmdir ../gone
        heft ls "$here/in/a.st"; heft convert "$here/in/a.st" "$here/out/o.zt"
        heft ls a.st; heft convert o.zt p.zt""",
    "temporary files": """TMPDIR=$PWD/tmp heft hash large.npz
        heft hash large.npz; heft convert large.npz out/o.zt""",
    "temporary files elsewhere": """unset TMPDIR; heft hash large.npz; TMPDIR= heft hash large.npz
        TMPDIR=$PWD/none heft hash large.npz; cd tmp; TMPDIR=. heft hash ../large.npz""",
    "splitting": """heft split --count 1 in/a.st out/new/; heft ls out/new; heft verify out/new
        heft split --force --count 1 --name x in/b.st out/new; heft split --count 1 in/a.st ./here
        cd out/new; heft split --force --count 1 ../../in/b.st .; heft merge . ../o.gguf""",
    "a split that fails": """(ulimit -f 100; heft split --count 1 in/a.st out/new); ls out
        heft split --count 1 in/b.st out/new""",
    "editing": """heft edit --set k=v in/b.st; heft edit --set k=w in/b.st
        heft edit --set k="$(printf %9000s x)" in/b.st; heft edit --set k=z link.st
        heft edit in; heft edit out/none; heft edit --dry-run --set k=v in/a.st""",
    "appending": """heft convert in/a.st out/a.zt; heft append out/a.zt in/b.st
        heft verify out/a.zt; heft append link.st in/b.st; heft verify in/a.st""",
    "stale temporary files": """touch out/.o.zt.00000001.heft-new; heft convert in/b.st out/o.zt""",
    "profiles": """mkdir p; echo '{}' > p/mine.json; heft verify --profile none in/b.st
        heft verify --profile p/mine.json in/b.st
        HEFT_PROFILES=p heft verify --profile mine in/b.st
        for p in $(ls $PROFILES | sed 's/.json//'); do
            HEFT_PROFILES=$PROFILES heft verify --profile $p in/b.st; done""",
    "several inputs": """mkdir c; cp in/b.st c/c.st; heft merge in/a.st c/c.st out/o.gguf
        heft diff in/a.st c/c.st; heft verify in/*.st c/* link.st
        heft ids --model hub/models--me--it/snapshots/main c/c.st""",
    "few descriptors": """for n in 3 4 5 6 8; do FILES=$n; heft ls in/a.st; done""",
    "many threads": """heft convert -j40 --cast '*=bf16' in/a.st out/o.zt; heft stats in/a.st""",
    "reports": """heft report in/a.st -o out/a.html; cd out; heft report ../in/b.st
        heft report ../in/b.st; heft report ../link.st --force; heft report ../in/a.st -o -
        heft report ../in/none; heft report a.html -o x.html""",
    "a pipeline": """mkdir -p p/unet p/vae; cp in/a.st p/unet/model.safetensors
        ln -s model.safetensors p/unet/link; cp in/b.st p/vae/model.safetensors
        echo '{"_class_name": "P", "unet": ["d", "U"], "vae": ["d", "V"]}' > p/model_index.json
        heft ls p; heft verify p; cd p; heft info .; heft convert . ../out/o.zt""",
    "bills of materials": """echo '---' > one/README.md; heft sbom one -o out/bill.json
        heft sbom folder; heft sbom folder -o out/bill.json; cd one
        heft sbom model.safetensors -f -o ../out/bill.json; heft sbom . -o bill.json""",
    "without files": """heft formats --raw; heft --version; heft convert --help""",
}


def contents(top):
    return {
        str(p.relative_to(top)): (p.lstat().st_mode, p.is_file() and p.read_bytes())
        for p in sorted(top.rglob("*"))
        if not p.is_fifo()
    }


def outcome(script, function):
    """Return exit status, output, messages and files."""
    with tempfile.TemporaryDirectory(prefix="heft-") as name:
        top = pathlib.Path(name, "top")
        top.mkdir()
        fill(top)
        env = os.environ | {"HEFT": HEFT, "PROFILES": str(TOP / "share/heft/profiles")}
        env.pop("TMPDIR", None)
        done = subprocess.run(["sh", "-c", f'{function}\n{script}'], cwd=top, env=env,
                              stdin=subprocess.DEVNULL, capture_output=True)
        return {
            "exit": done.returncode, "stdout": done.stdout.replace(name.encode(), b"TOP"),
            "stderr": done.stderr.replace(name.encode(), b"TOP"), "files": contents(top)
        }


# FILES limits the number of open files.
RUN = """heft() {
    echo "$1" >&2; %s
    sh -c 'ulimit -n $0; exec "$@"' "${FILES:-$(ulimit -n)}" "$HEFT" "$@"; echo "$?" >&2
}"""


ADD_OPTION = 'case $1 in [a-z]*) w=$1; shift; set -- $w --no-sandbox "$@" ;; esac;'


def differences(script):
    """Compare the results with and without the sandbox; a command must succeed."""
    inside = outcome(script, RUN % "")
    plain = outcome(script, RUN % ADD_OPTION)
    for key, value in plain.items():
        if key == "files":
            names = sorted(set(value) | set(inside[key]))
            other = [n for n in names if value.get(n) != inside[key].get(n)]
            if other:
                yield f"other files: {other}"
        elif value != inside[key]:
            yield f"{key}: {inside[key]!r:.2000} instead of {value!r:.2000}"
    if b"\n0\n" not in inside["stderr"]:
        yield f"no command succeeds: {inside['stderr']!r:.2000}"


def can_decode():
    """Return whether this build has zlib."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "large.npz")
        path.write_bytes(LARGE)
        done = subprocess.run([HEFT, "verify", path], capture_output=True)
    return done.returncode != CANNOT


def can_fetch():
    """Return whether this build has libcurl."""
    done = subprocess.run([HEFT, "ls", "http://127.0.0.1:9/x"], capture_output=True)
    return done.returncode != CANNOT


def results():
    fetched = FETCHED if can_fetch() else []
    for args in ATTACKED + fetched:
        yield f"attack on heft {' '.join(args)}", list(attacks(args))
    for title, script in WORKING.items():
        if "large" in script and not can_decode():
            continue
        yield f"works: {title}", list(differences(script))


if __name__ == "__main__":
    sys.exit(tap.report(results()))
