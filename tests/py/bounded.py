"""bounded.py - run commands on hostile files, and measure processor time and memory.

The memory is the peak that the kernel reports; a limit on the address space makes larger requests
fail."""
import os
import resource
import subprocess

MIB, GIB = 1 << 20, 1 << 30
SECONDS, MEMORY, CPU_LIMIT = 2, 128 * MIB, 30  # a command that only lists
READ_SECONDS, READ_MEMORY = 10, 256 * MIB  # a command that reads data, within --max-bytes
ADDRESS_SPACE = 2 * GIB  # bytes; includes the stacks of threads and the mappings of files
SLOWER = float(os.environ.get("HEFT_SLOWER", "1"))


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT))


def run(*args):
    """Run a command; return (exit status, seconds of processor time, peak memory in bytes)."""
    child = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=limit)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def faults(allowed, *args, most=(SECONDS, MEMORY)):
    """Run a command; yield faults of the exit status, time and memory."""
    code, seconds, memory = run(*args)
    command = args[1]
    if code not in allowed:
        yield f"{command} ended with {code}, not {sorted(allowed)}"
    if seconds > most[0] * SLOWER:
        yield f"{command} took {seconds:.1f} s"
    if memory > most[1] * SLOWER:
        yield f"{command} took {memory // MIB} MiB"
