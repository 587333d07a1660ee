"""harness.py - what the sections of run.py share: running in turns, figures, the machine."""
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
    """Makes the machine find so much memory now, not while the clock runs."""
    with contextlib.closing(mmap.mmap(-1, max(size, PAGE))) as m:
        try:
            m.madvise(mmap.MADV_HUGEPAGE)
            m.madvise(POPULATE_WRITE)
        except (OSError, AttributeError):
            for at in range(0, size, PAGE):
                m[at] = 1


def warm_memory(most):
    """The same for the machine's free memory, once: the page cache takes what it finds."""
    with open("/proc/meminfo", encoding="utf-8") as f:
        free = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in f}["MemFree"]
    prefault(min(free * 3 // 4, most) // PAGE * PAGE)


RECLAIMED_FILE = pathlib.Path("/sys/module/page_reporting/parameters/reported_kib")


def reclaimed_bytes():
    """Bytes of free memory that this system has given back to the host of its virtual machine; 0: it does not say."""
    with contextlib.suppress(OSError, ValueError):
        return int(RECLAIMED_FILE.read_text(encoding="ascii")) * 1024
    return 0


class StableMemory:
    """Runs that fill memory which the run before has freed.  What was handed back in between has to be
    found again, at a tenth of the speed."""
    TRIES, MAX_SECONDS, MAX_RECLAIMED = 10, 12.0, 32 * MIB

    def __init__(self):
        self.before = None  # what was handed back when the run before began

    def run(self, function):
        """What function() returns, once such a run has gone by in which memory stayed; or else the last one."""
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


def lines_of(*argv):
    """What a program prints, as lists of numbers; None when it fails, which it tells itself."""
    done = subprocess.run(list(map(str, argv)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        print(f"  {done.stderr.strip()}", file=sys.stderr)
        return None
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def program(name, *args):
    """The same, of a program of this folder."""
    return lines_of(BUILD / "bench" / name, *args)


def seconds(*argv, out=os.devnull):
    """Wall time of a command that must succeed; what it says of losses is not wanted here."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    path = shutil.which(argv[0])
    begin = time.perf_counter()
    pid = os.posix_spawn(path, argv, os.environ, file_actions=actions)
    status = os.waitpid(pid, 0)[1]
    took = time.perf_counter() - begin
    if status:
        sys.exit(f"{' '.join(argv)}: ended with status {os.waitstatus_to_exitcode(status)}")
    return took


def peak_memory(*argv):
    """The most memory of its own, mapped files aside, that a command was seen with; None: it failed."""
    peak = 0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None:
            with contextlib.suppress(OSError):
                text = pathlib.Path(f"/proc/{p.pid}/status").read_text(encoding="utf-8")
                own = [int(line.split()[1]) for line in text.splitlines()
                       if line.startswith(("RssAnon", "RssShmem"))]
                peak = max(peak, sum(own) * 1024)
            time.sleep(0.0005)
    return None if p.returncode else peak


def measure_in_turns(rounds, runs):
    """{label: function} -> {label: what it returned in each turn but the first}."""
    results = {label: [] for label in runs}
    for i in range(rounds + 1):
        for label, run in runs.items():
            result = run()
            if i:
                results[label].append(result)
    return results


def speed(size, times):
    """GB/s of each run."""
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
    """Rows of figures, grouped by section, printed as they come."""

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
        """limit: the most that the median may be, or the least.  own: values and unit of a figure that says
        the same without a peer."""
        values = values if isinstance(values, list) else [values]
        median = statistics.median(values)
        holds = None if limit is None else median >= limit if at_least else median <= limit
        self.add_row({
            "what": what, "unit": unit, "median": median, "min": min(values), "max": max(values),
            "runs": len(values), "limit": limit, "at_least": at_least, "peer": peer, "holds": holds,
            "own": statistics.median(own[0]) if own else None, "own_unit": own[1] if own else None
        })

    def ratio(self, what, times, peers, peer, limit=None, own=None):
        """How many times the peer's time it took: at most."""
        self.add(f"{what}: time / {peer}", [a / b for a, b in zip(times, peers)], "x", limit,
                 peer=peer, own=own)

    def faster(self, what, times, peers, peer, limit=None, own=None):
        """How many times the peer's speed it has: at least."""
        self.add(f"{what}: speed / {peer}", [b / a for a, b in zip(times, peers)], "x", limit,
                 at_least=True, peer=peer, own=own)

    def missing(self, what, peer, limit=None, own=None):
        """A row whose peer is not there."""
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
    """What a program says first of itself; None: it is not here."""
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=False)
        return done.stdout.split("\n")[0].strip() if done.returncode == 0 else None
    return None


def file_system(path):
    """Its type: the mount whose path is the longest that leads to this one."""
    best, path = ("", "unknown"), str(pathlib.Path(path).resolve())
    with contextlib.suppress(OSError), open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            _, mount, kind = line.split()[:3]
            if (path + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(best[0]):
                best = mount, kind
    return best[1]


def machine(directory):
    """What figures depend on; nothing that tells whose machine it is."""
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
