#!/usr/bin/env python3
"""against.py BUILD [--only SECTION,...] [--rounds N] [--dir DIR] [--full] [--check]: compare this
build with the build of a commit.

Each row runs both builds in turns; the build that goes first changes with every turn, and the first
turn is dropped. The verdict is that of a rank test (Mann-Whitney): faster, slower, or within noise.
Rows of a single thread measure the processor time of the user, the rest the wall time. Exit code 1
if a row is slower."""
import argparse
import os
import pathlib
import resource
import signal
import statistics
import sys
import tempfile
import time

from harness import BUILD, number, prefault, processors, read_numbers, MIB
from inputs import Inputs
from ranks import verdict

TENSORS, TENSORS_FULL, PAYLOAD, PAYLOAD_FULL = 100_000, 1_000_000, 288, 2016
STARTS = 20  # executions of a short command in a run
OPENED = ("safetensors", "burnpack", "embd", "gguf", "gptrs-archive", "gptrs-checkpoint", "mag",
          "npz", "ztensor")
READER = str(pathlib.Path(__file__).with_name("reader.py"))


def program(build, name, *args):
    """Run a program of the bench from a build; exit after a failure."""
    lines = read_numbers(build / "bench" / name, *args)
    if lines is None:
        sys.exit(f"{build / 'bench' / name} failed")
    return lines


def command(build, *args, times=1, codes=(0,)):
    """Run the command; return (processor time, wall time) in seconds of each execution."""
    argv = [str(build / "heft"), *map(str, args)]
    actions = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for _ in range(times):
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in codes:
            sys.exit(f"{' '.join(argv)}: ended with status {code}")
    after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begin
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used / times, took / times


def opening(inputs, sizes):
    """Yield the rows of heft_file_open(), the fastest of several passes."""
    for fmt in OPENED:
        path = inputs.index(fmt, min(sizes.tensors, TENSORS) if fmt == "npz" else sizes.tensors)
        yield f"open {fmt}", lambda build, path=path: min(
            line[0] for line in program(build, "open", "heft", path, 5))
        inputs.drop(path)


def starting(inputs, sizes):
    """Yield the row of a command that has little to do."""
    path = inputs.model("safetensors", 1)
    yield "ls of a small file, processor time", lambda build: command(build, "ls", path,
                                                                      times=STARTS)[0]
    inputs.drop(path)


def commands(inputs, sizes):
    """Yield the rows of commands that read payloads, on all processors."""
    path, again = inputs.model("safetensors", sizes.mib), inputs.path("again.safetensors")
    checked, out = inputs.model("embd", sizes.mib), inputs.path("out.safetensors")
    os.link(path, again)

    def convert(build):
        inputs.drop(out)
        return command(build, "convert", "--no-sync", checked, out)[1]

    for words in (["stats", path], ["stats", "--quantiles", path], ["diff", path, again],
                  ["verify", checked], ["hash", path]):
        shown = " ".join(word for word in words if not word.startswith("/"))
        yield shown, lambda build, words=words: command(build, *words)[1]
    yield "convert embd to safetensors", convert
    inputs.drop(path, again, checked, out)


def loading(inputs, sizes):
    """Yield the rows of heft_part_read_many()."""
    for label, path in (("safetensors", inputs.model("safetensors", sizes.mib)),
                        (".npz", inputs.path("made.npz")), (".pt", inputs.path("made.pt"))):
        made = os.path.exists(path) or read_numbers(sys.executable, READER, "make", path, sizes.mib)
        if made is None:
            continue
        yield f"read a {label}, 1 thread", lambda build, path=path: program(
            build, "load", "heft:fresh", path, 1, "one")[0][0]
        inputs.drop(path)


def parameters(inputs, sizes):
    """Yield the rows of the parameter store: the time of an acquire and release."""
    path = inputs.model("safetensors", 72)
    for threads in sorted({1, processors(), 8}):
        yield f"acquire and release, {threads} thread{'s' * (threads > 1)}", \
            lambda build, n=threads: 1 / program(build, "params", "resident", path, n)[0][0]
    inputs.drop(path)


SECTIONS = [opening, starting, commands, loading, parameters]


def compare(what, run, builds, rounds):
    """Print the row of a figure; return the verdict. builds: ours, theirs."""
    times = {build: [] for build in builds}
    for turn in range(rounds + 1):
        for build in builds if turn % 2 else reversed(builds):
            took = run(build)
            if turn:
                times[build].append(took)
    ours, theirs = (times[build] for build in builds)
    ratio, said = verdict(ours, theirs)
    print(f"  {what:<44} {number(statistics.median(theirs) * 1e6):>10} "
          f"{number(statistics.median(ours) * 1e6):>10} us {ratio:>7.3f} x  {said}", flush=True)
    return said


def arguments():
    names = [section.__name__ for section in SECTIONS]
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("build", type=pathlib.Path, help="build folder of the other commit")
    args.add_argument("--only", default=",".join(names), metavar="SECTION,...",
                      help=", ".join(names))
    args.add_argument("--rounds", type=int, default=12, help="turns that are counted")
    args.add_argument("--dir", default=str(BUILD / "bench"), help="where inputs are made")
    args.add_argument("--full", action="store_true", help="1,000,000 tensors and 2 GiB")
    args.add_argument("--check", action="store_true", help="check these arguments and end")
    a = args.parse_args()
    a.tensors, a.mib = (TENSORS_FULL, PAYLOAD_FULL) if a.full else (TENSORS, PAYLOAD)
    if set(a.only.split(",")) - set(names) or a.rounds < 5:
        args.error("--only takes names of sections, --rounds at least 5")
    os.makedirs(a.dir, exist_ok=True)
    return a


def main():
    a = arguments()
    if a.check:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run the clean-up of temporary files
    slower = []
    prefault(a.mib * MIB)
    print(f"  {'':<44} {'before':>10} {'now':>10}      ratio")
    with tempfile.TemporaryDirectory(prefix="tmp", dir=a.dir) as directory:
        inputs = Inputs(directory)
        for section in SECTIONS:
            if section.__name__ in a.only.split(","):
                slower += [what for what, run in section(inputs, a)
                           if compare(what, run, [BUILD, a.build.resolve()], a.rounds) == "slower"]
    print(f"slower: {', '.join(slower) if slower else 'nothing'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
