"""harness.py - shared code of the bench: measuring in turns, figures, the machine."""
import contextlib
import json
import mmap
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
HEFT = str(BUILD / "heft")
RESULTS = ROOT / "bench" / "results.json"
MIB, GIB = 1 << 20, 1 << 30
PAGE = mmap.PAGESIZE
POPULATE_WRITE = 23  # madvise(), Linux 5.14


# ---- running ---------------------------------------------------------------------------------


def prefault(size):
    """Allocate and touch `size` bytes, so that the system provides the memory before the
    measurement."""
    with contextlib.closing(mmap.mmap(-1, max(size, PAGE))) as m:
        try:
            m.madvise(mmap.MADV_HUGEPAGE)
            m.madvise(POPULATE_WRITE)
        except (OSError, AttributeError):
            for at in range(0, size, PAGE):
                m[at] = 1


def warm_memory(most):
    """Touch most of the free memory once, for the page cache."""
    with open("/proc/meminfo", encoding="utf-8") as f:
        free = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}["MemFree"]
    prefault(min(free * 3 // 4, most) // PAGE * PAGE)


RECLAIMED_FILE = pathlib.Path("/sys/module/page_reporting/parameters/reported_kib")


def reclaimed_bytes():
    """Return the bytes of free memory that the system returned to its host; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError):
        return int(RECLAIMED_FILE.read_text(encoding="ascii")) * 1024
    return 0


class StableMemory:
    """Repeat runs during which the host reclaims memory, because faulting in reclaimed memory is
    ten times slower."""
    TRIES, MAX_SECONDS, MAX_RECLAIMED = 10, 12.0, 32 * MIB

    def __init__(self):
        self.before = None  # reclaimed bytes at the start of the previous run

    def run(self, function):
        """Return the result of the first run without reclaimed memory, or of the last run."""
        began = time.perf_counter()
        for _ in range(self.TRIES):
            begun, before = reclaimed_bytes(), self.before
            result, self.before = function(), begun
            stayed = before is not None and reclaimed_bytes() - before < self.MAX_RECLAIMED
            if stayed or time.perf_counter() - began > self.MAX_SECONDS:
                break
        return result


def read_all(path):
    with open(path, "rb", buffering=0) as f:
        while f.read(4 * MIB):
            pass


def has_program(name):
    return (BUILD / "bench" / name).exists()


def read_numbers(*argv):
    """Return the output of a program as lists of numbers; on failure print stderr and return
    None."""
    done = subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        print(f"  {done.stderr.strip()}", file=sys.stderr)
        return None
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def program(name, *args):
    """Run a program of the bench; see read_numbers()."""
    return read_numbers(BUILD / "bench" / name, *args)


def run_command(argv, out=os.devnull):
    """Run a command that must succeed; return its wall time and its processor time. stderr is
    discarded."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    path = shutil.which(argv[0])
    begin = time.perf_counter()
    pid = os.posix_spawn(path, argv, os.environ, file_actions=actions)
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(argv)}: ended with status {os.waitstatus_to_exitcode(status)}")
    return took, used.ru_utime + used.ru_stime


def seconds(*argv, out=os.devnull):
    """Return the wall time of a command that must succeed; stderr is discarded."""
    return run_command(argv, out)[0]


def processor_seconds(*argv):
    """Return the time that the processors spent on a command, in the program and in the system."""
    return run_command(argv)[1]


def peak_memory(*argv, shared=True):
    """Return the peak of private memory of a command, without mapped files; None if the command
    fails. shared: with memory that processes share, as which files of a tmpfs count, too."""
    kinds, peak = ("RssAnon", "RssShmem") if shared else ("RssAnon", ), 0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None:
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{p.pid}/status").read_text(encoding="utf-8")
                own = [int(line.split()[1]) for line in text.splitlines()
                       if line.startswith(kinds)]
                peak = max(peak, sum(own) * 1024)
            time.sleep(0.0005)
    return None if p.returncode else peak


def measure_in_turns(rounds, runs):
    """Call each function once per turn; return {label: results of all turns but the first}."""
    results = {label: [] for label in runs}
    for i in range(rounds + 1):
        for label, run in runs.items():
            result = run()
            if i:
                results[label].append(result)
    return results


def speed(size, times):
    """Return GB/s of each run."""
    return [size / 1e9 / t for t in times]


def physical_memory():
    return os.sysconf("SC_PHYS_PAGES") * PAGE


def processors():
    return len(os.sched_getaffinity(0))


# ---- figures ---------------------------------------------------------------------------------


def number(x):
    return f"{x:.0f}" if x >= 1000 else f"{x:.3g}"


def bound_of(row):
    return "" if row["limit"] is None else f"{'>=' if row['at_least'] else '<='} {row['limit']:g}"


def verdict_of(row):
    if row["median"] is None:
        return f"{row['peer']} is not installed"
    return {None: "", True: "within", False: "OVER"}[row["holds"]]


class Report:
    """Rows of figures, grouped by section and printed immediately."""

    def __init__(self):
        self.rows, self.sections, self.began = [], [], 0.0

    def begin(self, name, about):
        self.sections.append({"name": name, "about": about})
        self.began = time.perf_counter()
        print(f"\n{name}: {about}", flush=True)

    def end(self):
        took = time.perf_counter() - self.began
        self.sections[-1]["seconds"] = round(took, 1)
        print(f"  ({took:.0f} s)", flush=True)

    def add_row(self, row):
        self.rows.append({"section": self.sections[-1]["name"], **row})
        figure = "" if row["median"] is None else f"{number(row['median'])} {row['unit']}"
        spread = f"{number(row['min'])} - {number(row['max'])}" if row["runs"] > 1 else ""
        own = f"{number(row['own'])} {row['own_unit']}" if row["own"] is not None else ""
        print(f"  {row['what']:<60} {figure:>15} {spread:>17}  {bound_of(row):<8} "
              f"{verdict_of(row):<7} {own:>14}".rstrip(), flush=True)

    def add(self, what, values, unit, limit=None, at_least=False, peer=None, own=None):
        """Add a row. `limit` bounds the median from above, or from below if `at_least`; `own` has
        values and unit of a figure without a peer."""
        values = values if isinstance(values, list) else [values]
        median = statistics.median(values)
        holds = None if limit is None else median >= limit if at_least else median <= limit
        self.add_row({
            "what": what, "unit": unit, "median": median, "min": min(values), "max": max(values),
            "runs": len(values), "limit": limit, "at_least": at_least, "peer": peer, "holds": holds,
            "own": statistics.median(own[0]) if own else None, "own_unit": own[1] if own else None
        })

    def ratio(self, what, times, peers, peer, limit=None, own=None):
        """Add the ratio of times to the peer's times; `limit` is the maximum."""
        self.add(f"{what}: time / {peer}", [a / b for a, b in zip(times, peers)], "x", limit,
                 peer=peer, own=own)

    def faster(self, what, times, peers, peer, limit=None, own=None):
        """Add the ratio of speeds to the peer's speeds; `limit` is the minimum."""
        self.add(f"{what}: speed / {peer}", [b / a for a, b in zip(times, peers)], "x", limit,
                 at_least=True, peer=peer, own=own)

    def missing(self, what, peer, limit=None, own=None):
        """Add a row for a peer that is not installed."""
        self.add_row({
            "what": f"{what}: speed / {peer}", "unit": "x", "median": None, "min": None,
            "max": None, "runs": 0, "limit": limit, "at_least": True, "peer": peer, "holds": None,
            "own": statistics.median(own[0]) if own else None, "own_unit": own[1] if own else None
        })

    def write(self, path, about):
        path.write_text(
            json.dumps({**about, "sections": self.sections, "figures": self.rows}, indent=1) + "\n",
            encoding="utf-8")


# ---- the machine -----------------------------------------------------------------------------


def first_line(*argv):
    """Return the first line of a program's output; None if the program is not installed."""
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
        return done.stdout.split("\n")[0].strip() if done.returncode == 0 else None
    return None


def file_system(path):
    """Return the type of a path's file system, from the longest matching mount point."""
    best, path = ("", "unknown"), str(pathlib.Path(path).resolve())
    with contextlib.suppress(OSError), open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            _, mount, kind = line.split()[:3]
            if (path + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best[0]):
                best = mount, kind
    return best[1]


def machine(directory):
    """Describe the machine without identifying the owner."""
    fields = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    return {"date": time.strftime("%Y-%m-%d"), "heft": first_line(HEFT, "--version"),
            "cpu": fields.get("model name") or platform.machine(), "processors": processors(),
            "memory": f"{physical_memory() / GIB:.0f} GiB",
            "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
            "file_system": file_system(directory)}
