"""slow_files.py - files on a file system with slow requests: tests/fuse/slow_fs.c."""
import sys
import tempfile

from harness import BUILD, ROOT, measure_in_turns
from payloads import add_share, loading_speed

sys.path.insert(0, str(ROOT / "tests" / "fuse"))
from slow_mount import mounted, obstacle  # noqa: E402

PROGRAM = BUILD / "tests" / "slow_fs"
LIMITS = (("many reads of 8 MiB with O_DIRECT", "direct:many", 0.9),
          ("many reads of 8 MiB", "pread:many", 0.9))


def measure(r, inputs, path):
    hows = ("heft:touched", "direct:many", "pread:many")
    took = measure_in_turns(
        5, {how: lambda how=how: loading_speed(inputs, how, path) for how in hows})
    for peer, how, limit in LIMITS:
        add_share(r, "read ahead", took["heft:touched"], took[how], peer, limit)
    turns = measure_in_turns(1, {how: lambda how=how: loading_speed(inputs, how, path)
                                 for how in ("heft:map", "direct:many")})
    add_share(r, "mapped", turns["heft:map"], turns["direct:many"], LIMITS[0][0], None)


def slow_files(r, inputs, formats, quick):
    """heft_part_read_many of a file on a file system of FUSE, compared with 16 threads that read 8
    MiB each. A request takes 1 ms and a second for every 30 MiB, 40 requests are served at the
    same time; 1 GiB."""
    path = inputs.model("safetensors", 144 if quick else 1008)
    with tempfile.TemporaryDirectory(dir=inputs.directory, prefix="mount-") as folder:
        if not PROGRAM.exists() or obstacle():
            r.missing("read ahead", LIMITS[0][0], LIMITS[0][2])
        else:
            with mounted(PROGRAM, folder, path, latency=1000, rate=30, workers=40) as m:
                if m:
                    measure(r, inputs, m.path)
                else:
                    r.missing("read ahead", LIMITS[0][0], LIMITS[0][2])
    inputs.drop(path)
