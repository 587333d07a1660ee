#!/usr/bin/env python3
"""check_fuzz.py BUILD [--seconds N | --each N] [--seed N] [TARGET...]: run the fuzz targets of a
build with -Dfuzz=true, all targets in N seconds, or each target for N seconds.

Seeds and words of the dictionary come from the generators of samples. The corpus of a target is
kept in .dev/fuzz/TARGET, so that the next run continues; an input that fails is kept next to it.
Prints TAP, the figures of each target, and a JSON comment with all figures."""
import argparse
import collections
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = ROOT / ".dev/fuzz"
MAX_SEED, MAX_INPUT = 2048, 4096
WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]{3,23}")


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("targets", nargs="*")
    p.add_argument("--seconds", type=float)
    p.add_argument("--each", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_intermixed_args()


def make_samples():
    """Run the generators, unless another run has done so; return the small samples."""
    samples, stamp = HOME / "samples", HOME / "samples.stamp"
    generators = [p for p in sorted((ROOT / "tests/py").glob("gen_*.py"))
                  if ("Samples" in p.read_text() and p.name != "gen_samples.py")
                  or p.name == "gen_sign.py"]
    newest = max(p.stat().st_mtime for p in (ROOT / "tests/py").glob("*.py"))
    with open(HOME / "samples.lock", "w") as lock:  # slices run at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.stat().st_mtime < newest:
            subprocess.run([sys.executable, ROOT / "tests/py/gen_samples.py", stamp, samples,
                            *generators], check=True, stdout=subprocess.DEVNULL)
    profiles = (ROOT / "share/heft/profiles").glob("*.json")
    answers = (ROOT / "fuzz/answers").iterdir()
    return [p for p in [*sorted(samples.rglob("*")), *sorted(profiles), *sorted(answers)]
            if p.is_file() and p.stat().st_size <= MAX_SEED]


def make_dictionary(samples):
    """Join the dictionary of the tree and the words that several samples contain."""
    counts = collections.Counter()
    for path in samples:
        counts.update(set(WORD.findall(path.read_bytes())))
    words = [w.decode() for w, n in counts.most_common(400) if n > 7]
    path = HOME / "words.dict"
    new = HOME / f"words.{os.getpid()}"
    new.write_text((ROOT / "fuzz/formats.dict").read_text() + "".join(f'"{w}"\n' for w in words))
    return new.replace(path)


def make_corpus(program, corpus, samples):
    """Fill an empty corpus with the samples that reach different code. A target that decides by
    the last bytes of an input gets random bytes after each sample. Return the log of a failure, or
    an empty text; a sample that fails is kept next to the corpus."""
    if any(corpus.iterdir()):
        return ""
    script = int(subprocess.run([program, "--script-bytes"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout)
    seeds = corpus.with_name(corpus.name + "-seeds")
    shutil.rmtree(seeds, ignore_errors=True)
    seeds.mkdir()
    for i, path in enumerate(samples):
        tail = random.Random(path.name).randbytes(script)
        (seeds / f"{i:05}").write_bytes(path.read_bytes() + tail)
    merged = subprocess.run([program, "-merge=1", f"-max_len={MAX_INPUT}", "-timeout=20",
                             "-detect_leaks=0", f"-artifact_prefix={corpus}-", corpus, seeds],
                            check=False, text=True, errors="replace", stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE)
    shutil.rmtree(seeds)
    # A merge goes on after an input that fails, and succeeds.
    return merged.stderr if merged.returncode or "Test unit written" in merged.stderr else ""


def print_log(log):
    for line in log.splitlines():
        print("#", line)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_figures(process, figures):
    """Read the fuzzer's lines; note when the number of covered edges rises."""
    begin = last = time.monotonic()
    tail = collections.deque(maxlen=60)
    for line in process.stderr:
        tail.append(line)
        found = re.match(r"#(\d+)\s+\w+\s+cov: (\d+)", line)
        if found and int(found[2]) > figures["edges"]:
            figures["edges"] = int(found[2])
            last = time.monotonic()
        found = re.match(r"stat::number_of_executed_units:\s*(\d+)", line)
        if found:
            figures["executions"] = int(found[1])
    end = time.monotonic()
    figures["seconds"] = round(end - begin, 1)
    figures["since_new_edge"] = round(end - last)
    return "".join(tail)


def run_target(target, args, seconds, samples, words):
    program, corpus = args.build.resolve() / "fuzz" / f"fuzz_{target}", HOME / target
    corpus.mkdir(exist_ok=True)
    failed_samples = make_corpus(program, corpus, samples)
    print_log(failed_samples)
    options = {"max_total_time": round(seconds), "timeout": 20, "rss_limit_mb": 1024,
               "max_len": MAX_INPUT, "dict": words, "print_final_stats": 1, "seed": args.seed,
               "reload": 0, "artifact_prefix": f"{HOME}/{target}-",
               # Scheduling by entropy and searches for leaks take nine tenths of the time; targets
               # count their memory, and the search at the end stays.
               "entropic": 0, "detect_leaks": 0}
    figures = {"target": target, "executions": 0, "edges": 0}
    before = cpu_seconds()
    command = [program, *(f"-{k}={v}" for k, v in options.items()), corpus]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        log = read_figures(process, figures)
    figures["cpu_seconds"] = round(cpu_seconds() - before, 1)
    figures["per_cpu_second"] = round(figures["executions"] / (cpu_seconds() - before))
    if process.returncode:
        print_log(log)
    figures["failed"] = process.returncode != 0 or failed_samples != ""
    return figures


def main():
    args = parse_arguments()
    os.environ.setdefault("ASAN_OPTIONS", "exitcode=99:quarantine_size_mb=16")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:exitcode=99:print_stacktrace=1")
    HOME.mkdir(parents=True, exist_ok=True)
    known = sorted(p.name[5:] for p in (args.build / "fuzz").glob("fuzz_*") if p.is_file())
    targets = args.targets or known
    if set(targets) - set(known):
        sys.exit(f"check_fuzz.py: the targets are {', '.join(known)}")
    samples = make_samples()
    words = make_dictionary(samples)
    seconds = args.seconds / len(targets) if args.seconds else args.each
    print(f"1..{len(targets)}")
    all_figures = []
    for i, target in enumerate(targets):
        f = run_target(target, args, seconds, samples, words)
        all_figures.append(f)
        print(f"{'not ok' if f['failed'] else 'ok'} {i + 1} - {target}: {f['executions']} "
              f"executions, {f['per_cpu_second']} per CPU second, {f['edges']} edges, the last "
              f"new edge {f['since_new_edge']} s before the end", flush=True)
    failures = sum(f["failed"] for f in all_figures)
    print("# " + json.dumps({
        "campaign": "fuzz", "cases": sum(f["executions"] for f in all_figures),
        "seconds": round(sum(f["seconds"] for f in all_figures), 1),
        "cpu_seconds": round(sum(f["cpu_seconds"] for f in all_figures), 1),
        "failures": failures, "targets": all_figures
    }))
    return failures != 0


sys.exit(main())
