#!/usr/bin/env python3
"""mutate.py [OPTION...] [N]: change a check of the library at a time; does a test fail?

Takes N mutants (200), as many from each layer, at random. All mutants of the tree are compiled into
one build (see mutants.py). Each test runs once to record the mutants that change values. Then,
for each mutant taken, these tests run, the fastest first, until a test fails. A test that takes
longer than ten times the normal time and 10 s has failed.

  --all                 every mutant
  --checks              only mutants of refusals and of the conditions of refusals
  --layer L, --file F   only mutants of a layer, of a file
  --id N                only this mutant; may be repeated
  --survivors           only mutants that survived the last run
  --seed N              other mutants
  --list                print the mutants instead of running them
  --unseen              print the mutants that change no value in any test; they survive
  --tests PATTERN       run only tests whose names match the regular expression, when time is short:
                        the results are kept in a book of their own
  --patience S          begin no test for a mutant that has survived S seconds; the mutant counts
                        as a survivor
  --book FILE           where the results are (.dev/mutants.jsonl)

Results of the same sources and tests are not run again. tools/mutants.tsv lists mutants that no
test can notice, with the reason. Ends with a table and the survivors. The exit status is 1 if
mutants.tsv names mutants that do not exist."""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import mutants

TOP = pathlib.Path(__file__).resolve().parent.parent
WORK = TOP / "build-mutate"
TREE, CACHE, SEEN = WORK / "tree", WORK / "cache", WORK / "seen"
BLOCKS = WORK / "blocks.json"  # ids of each file: the first, and how many
BUILD = TREE / "build"  # inside, since Heft finds profiles in ../share
ACCEPTED = TOP / "tools/mutants.tsv"
RUNTIME = TOP / "tools/mutant.h"
LAYERS = ["base", "model", "grammar", "format", "companion", "folder", "scheme", "logical", "map",
          "mix", "gguf", "scan", "sign", "share", "move", "core", "params", "simd", "port", "local",
          "cli"]
SUITES = {"unit", "engine", "formats", "cli", "samples", "fuzz", "oracle", "examples"}
# These need names that are defined before they are included.
TEMPLATES = {"src/simd/blake3_lanes.h", "src/simd/blake3_squares.h"}
SAMPLING = ("check_no_memory.py", "check_failing_calls.py")  # the whole needs --full
ELSEWHERE = ("src/port/windows/", "src/port_none/")  # sources of other builds
MUTANTS = 1 << 17  # equal to MUTANTS in mutant.h
FAILED_LINE = re.compile(rb"^not ok (?!.*# SKIP)", re.M)


def digest(*paths):
    h = hashlib.sha256()
    for path in paths:
        h.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()[:16]


def layer_of(name):
    return name.split("/")[1] if name.startswith("src/") else name.split("/")[0]


# ---- the tree with all mutants -------------------------------------------------------------------


def tree_files():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    out = subprocess.run(command, cwd=TOP, check=True, stdout=subprocess.PIPE).stdout
    return [n for n in out.decode().split("\0") if n and (TOP / n).is_file()]


def write_changed(path, data):
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def is_source(name):
    is_code = name.startswith(("src/", "cli/")) and name.endswith((".c", ".h"))
    return is_code and name not in TEMPLATES and not name.startswith(ELSEWHERE)


def copy_tree(names):
    for name in names:
        if not is_source(name) or not (TREE / name).exists():
            write_changed(TREE / name, (TOP / name).read_bytes())
            shutil.copymode(TOP / name, TREE / name)
    wanted = {TREE / n for n in names}
    for path in [p for p in TREE.rglob("*") if p.is_file()]:
        if path not in wanted and not path.is_relative_to(BUILD):
            path.unlink()


def quiet(env, *command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)


def configure():
    if not (BUILD / "build.ninja").exists():
        quiet({**os.environ, "CC": "gcc"}, "meson", "setup", str(BUILD), str(TREE),
              "-Dauto_features=enabled", "-Dwerror=false", "-Dwarning_level=0",
              "-Dbuildtype=plain", "-Doptimization=1", f"-Dshared={TOP.parent / 'shared'}",
              f"-Dc_args=-w -include {RUNTIME} -fsanitize=undefined "
              "-fsanitize-undefined-trap-on-error")


def compiler_options():
    """Options of each source that is built, for the sources outside of the copy."""
    quiet(None, "ninja", "-C", str(BUILD), "build.ninja")
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if not path.is_relative_to(TREE) or path.relative_to(TREE).parts[0] not in ("src", "cli"):
            continue
        options = []
        for word in shlex.split(entry["command"]):
            if word.startswith("-I"):
                folder = (pathlib.Path(entry["directory"]) / word[2:]).resolve()
                inside = folder.is_relative_to(TREE)
                options.append(f"-I{TOP / folder.relative_to(TREE) if inside else folder}")
            elif word.startswith("-D"):
                options.append(word)
        found[str(path.relative_to(TREE))] = options
    return found


def find_one(job):
    name, options = job
    path = CACHE / (digest(TOP / name, TOP / "tools/mutants.py") + "-" + name.replace("/", "-"))
    if path.exists():
        return pickle.loads(path.read_bytes())
    source = mutants.find(TOP, name, options)
    path.write_bytes(pickle.dumps(source))
    return source


def first_ids(sources):
    """Yield (source, id of the first mutant). A file keeps the ids while the mutants fit, so that
    a change of a file does not compile the others again."""
    blocks = json.loads(BLOCKS.read_text()) if BLOCKS.exists() else {}
    for source in sources:
        count = len(source.mutants)
        if count > blocks.get(source.name, [0, -1])[1]:
            end = max((start + size for start, size in blocks.values()), default=1)
            room = count + count // 8 if BLOCKS.exists() else count
            blocks[source.name] = [end, room]
        yield source, blocks[source.name][0]
    if max((start + size for start, size in blocks.values()), default=1) > MUTANTS:
        BLOCKS.unlink(missing_ok=True)
        raise SystemExit(f"mutant.h has room for {MUTANTS} mutants: start again")
    BLOCKS.write_text(json.dumps(blocks))


def write_mutants(names):
    """Writes every source with mutants; returns the mutants."""
    CACHE.mkdir(parents=True, exist_ok=True)
    options = compiler_options()
    other = options["src/port/system/disk.c"]
    jobs = [(n, options.get(n, other)) for n in names
            if n in options or (is_source(n) and n.endswith(".h"))]
    with multiprocessing.Pool() as pool:
        sources = pool.map(find_one, sorted(jobs), chunksize=1)
    found = []
    for source, first in first_ids(sources):
        write_changed(TREE / source.name, source.render(first).encode())
        found += source.mutants
    return found


# ---- the tests -----------------------------------------------------------------------------------


class Test:

    def __init__(self, name, command, env, folder):
        self.name, self.command, self.env, self.folder = name, command, env, folder
        self.seconds, self.works, self.seen = 0.0, False, b""

    def run(self, folder, limit, **more):
        """Runs the test in a temporary folder; returns True if the test passed."""
        os.chmod(folder, 0o755)  # some tests change the user
        env = {**os.environ, **self.env, "TMPDIR": folder, "HEFT_TEST_FEWER": "1",
               "HEFT_SLOWER": "4", **more}

        def restrict():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            seconds = int(limit) + 60  # ends programs that have left the session and loop for ever
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            for number in (signal.SIGINT, signal.SIGQUIT):  # shells ignore both in the background
                signal.signal(number, signal.SIG_DFL)

        child = subprocess.Popen(self.command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 start_new_session=True, preexec_fn=restrict)
        try:
            out, _ = child.communicate(timeout=limit)
            return child.returncode == 0 and not FAILED_LINE.search(out)
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.communicate()

    def key(self):
        """Return a digest of the files that the test depends on: programs, scripts and samples."""
        words = [pathlib.Path(self.folder) / word for word in self.command]
        files = {f.resolve() for f in words if f.is_file()}
        if any(f.suffix == ".py" for f in files):
            files |= {BUILD / "heft", BUILD / "libheft.so"}
        if "HEFT_SAMPLES" in self.env:
            files |= set((TREE / "tests/py").glob("gen_*.py"))
        if self.name.startswith("cli "):
            files |= set((TREE / "tests/cli").glob(self.command[-1] + ".*"))
        scripts = [f for f in files if f.suffix == ".py"]
        while scripts:
            script = scripts.pop()
            for name in re.findall(r"^ *(?:import|from) (\w+)", script.read_text(), re.M):
                for folder in (script.parent, TREE / "tests/py", TREE / "tools"):
                    module = folder / f"{name}.py"
                    if module.is_file() and module not in files:
                        files.add(module)
                        scripts.append(module)
        return hashlib.sha256((self.name + digest(*sorted(files))).encode()).hexdigest()[:16]


def all_tests():
    listing = subprocess.check_output(["meson", "introspect", str(BUILD), "--tests"])
    for t in json.loads(listing):
        suites = {s.split(":")[-1] for s in t["suite"]}
        if not suites & SUITES:
            continue
        folder = t["workdir"] or str(BUILD)
        if t["name"] == "cli":
            for case in sorted((TREE / "tests/cli").glob("*/*.sh")):
                name = f"{case.parent.name}/{case.stem}"
                yield Test(f"cli {name}", [*t["cmd"], name], t["env"], folder)
        elif any(word.endswith(SAMPLING) for word in t["cmd"]):
            yield Test(f"{t['name']}, all", [*t["cmd"], "--full"], t["env"], folder)
        else:
            yield Test(t["name"], t["cmd"], t["env"], folder)


def programs_of(pattern):
    """Return the targets of ninja for the tests with matching names."""
    listing = json.loads(subprocess.check_output(["meson", "introspect", str(BUILD), "--targets"]))
    built = {pathlib.Path(name) for target in listing for name in target["filename"]}
    targets = {"heft"}  # Cases of the command find the program in the environment.
    for t in all_tests():
        if re.search(pattern, t.name):
            paths = {(pathlib.Path(t.folder) / word).resolve() for word in t.command}
            targets |= {str(p.relative_to(BUILD)) for p in paths & built}
            targets |= {"tests/samples.stamp"} if "HEFT_SAMPLES" in t.env else set()
    return targets


def build(args):
    """Builds the programs of the chosen tests, or everything."""
    targets = programs_of(args.tests) if args.tests else []
    subprocess.run(["ninja", "-C", str(BUILD), "-j", str(args.jobs), "--quiet", *sorted(targets)],
                   check=True)


def record(test):
    """Runs the test once without a mutant, and records mutants that the test can notice."""
    path = SEEN / test.key()
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix="heft-mutate-") as folder:
            seen = pathlib.Path(folder) / "seen"
            seen.write_bytes(bytes(MUTANTS))
            os.chmod(folder, 0o755)
            os.chmod(seen, 0o666)
            inner = pathlib.Path(folder) / "tmp"
            inner.mkdir()
            begin = time.monotonic()
            works = test.run(str(inner), 1800, HEFT_MUTANT_SEEN=str(seen))
            path.write_bytes(pickle.dumps((works, time.monotonic() - begin, seen.read_bytes())))
    test.works, test.seconds, test.seen = pickle.loads(path.read_bytes())


def record_all(jobs, pattern):
    SEEN.mkdir(parents=True, exist_ok=True)
    tests = [t for t in all_tests() if re.search(pattern, t.name)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(record, tests))
    for t in tests:
        if not t.works:
            print(f"# left out, since it fails without a mutant: {t.name}")
    return sorted((t for t in tests if t.works), key=lambda t: t.seconds)


def try_mutant(mutant, tests, patience):
    """The first test that fails with the mutant, or None; and how many tests ran."""
    ran, begin = 0, time.monotonic()
    for test in tests:
        if time.monotonic() - begin > patience:
            break
        if test.seen[mutant.id]:
            ran += 1
            with tempfile.TemporaryDirectory(prefix="heft-mutate-",
                                             ignore_cleanup_errors=True) as folder:
                if not test.run(folder, 10 * test.seconds + 10, HEFT_MUTANT=str(mutant.id)):
                    return test.name, ran
    return None, ran


# ---- which mutants -------------------------------------------------------------------------------


def accepted(found):
    """Return the keys of mutants.tsv; complain of keys that no mutant has."""
    known = {m.key for m in found}
    rows, stale = set(), []
    for line in ACCEPTED.read_text().splitlines() if ACCEPTED.exists() else []:
        if line and not line.startswith("#"):
            key = "\t".join(line.split("\t")[:5])
            rows.add(key)
            stale += [] if key in known else [key]
    return rows, stale


def chosen(found, args, last):
    pool = [m for m in found if (not args.layer or layer_of(m.file) == args.layer)
            and (not args.file or args.file in m.file) and (not args.checks or m.is_check)]
    if args.id:
        return [m for m in found if m.id in args.id]
    if args.survivors:
        return [m for m in pool if last.get(m.key) == "survived"]
    if args.all:
        return pool
    by_layer = collections.defaultdict(list)
    for m in pool:
        by_layer[layer_of(m.file)].append(m)
    taken = []
    for layer in sorted(by_layer):
        random.Random(f"{args.seed} {layer}").shuffle(by_layer[layer])
        taken += by_layer[layer][:-(-args.n // len(by_layer))]
    return taken


def read_book(path, tree):
    """Results of this tree, and the last result of any tree."""
    same, last = {}, {}
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        last[row["key"]] = row["result"]
        if row["tree"] == tree:
            same[row["key"]] = row["result"]
    return same, last


def print_table(found, results):
    """Shares without the accepted mutants; the last is weighted by the mutants of each layer."""
    population = collections.Counter(layer_of(m.file) for m in found)
    rows = {layer: collections.Counter() for layer in LAYERS}
    for mutant, result in results:
        rows[layer_of(mutant.file)][result] += 1
    print("\nlayer       mutants  taken  killed  survived  accepted  share")
    weight = killed = 0.0
    for layer, r in rows.items():
        counted = r["killed"] + r["survived"]
        share = r["killed"] / counted if counted else 0
        weight += population[layer] * bool(counted)
        killed += population[layer] * share
        shown = f"{100 * share:.0f} %" if counted else "-"
        taken = sum(r.values())
        print(f"{layer:10} {population[layer]:8} {taken:6} {r['killed']:7} {r['survived']:9} "
              f"{r['accepted']:9} {shown:>6}")
    print(f"all layers, weighted: {100 * killed / weight if weight else 0:.1f} %")


def arguments():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("n", nargs="?", type=int, default=200)
    p.add_argument("--all", action="store_true")
    p.add_argument("--checks", action="store_true")
    p.add_argument("--layer", choices=LAYERS)
    p.add_argument("--file")
    p.add_argument("--id", type=int, action="append")
    p.add_argument("--survivors", action="store_true")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--list", action="store_true")
    p.add_argument("--unseen", action="store_true")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--tests", default="")
    p.add_argument("--patience", type=float)
    p.add_argument("--book", type=pathlib.Path)
    args = p.parse_args()
    name = "mutants-some-tests.jsonl" if args.tests else "mutants.jsonl"
    args.book = args.book or TOP / ".dev" / name
    return args


def show(mutant):
    return f"{mutant.file}:{mutant.line}: {mutant.function}: {mutant.kind}: {mutant.text}"


def run(taken, tests, args, tree, known):
    """Tries each mutant; returns (mutant, result) pairs."""
    lock, results = threading.Lock(), []
    args.book.parent.mkdir(parents=True, exist_ok=True)

    def one(mutant):
        if mutant.key in known:
            results.append((mutant, known[mutant.key]))
            return
        begin = time.monotonic()
        test, ran = try_mutant(mutant, tests, args.patience or float("inf"))
        result = "killed" if test else "survived"
        seconds = round(time.monotonic() - begin, 1)
        row = {"tree": tree, "key": mutant.key, "id": mutant.id, "line": mutant.line,
               "result": result, "by": test, "ran": ran, "seconds": seconds}
        with lock:
            results.append((mutant, result))
            with args.book.open("a") as f:
                f.write(json.dumps(row) + "\n")
            if not test:
                print(f"survived {ran} tests: {mutant.id} {show(mutant)}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, taken))
    return results


def main():
    args = arguments()
    names = tree_files()
    copy_tree(names)
    configure()
    found = write_mutants(names)
    rows, stale = accepted(found)
    judged = ("src", "cli", "include", "tests")
    tree = digest(*[TOP / n for n in names if n.split("/")[0] in judged]) + args.tests
    tree += f" {args.patience:g} s" if args.patience else ""
    known, last = read_book(args.book, tree)
    taken = chosen(found, args, last)
    if args.list:
        for m in taken:
            print(m.id, show(m))
        return 0
    build(args)
    tests = record_all(args.jobs, args.tests)
    if args.unseen:
        for m in taken:
            if m.key not in rows and not any(t.seen[m.id] for t in tests):
                print(m.id, show(m))
        return 0
    print(f"# {len(found)} mutants, {len(taken)} taken, {len(tests)} tests")
    results = run([m for m in taken if m.key not in rows], tests, args, tree, known)
    results += [(m, "accepted") for m in taken if m.key in rows]
    print_table(found, results)
    print("\nsurvivors:")
    for mutant, result in sorted(results, key=lambda r: r[0].id):
        if result == "survived":
            print(f"  {mutant.id} {show(mutant)}")
    for key in stale:
        print("not in the tree, but in mutants.tsv: " + key.replace("\t", ": "))
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
