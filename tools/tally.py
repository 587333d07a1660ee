#!/usr/bin/env python3
"""tally.py FILE ACTION...: run steps of a check and record their results in FILE.

  run LABEL COMMAND...    count TAP on stdout test by test, the tests of pytest, and "N of M files
                          as expected" file by file; otherwise use the exit status: 0 passed,
                          77 skipped
  meson LABEL DIR SUITES ARG...
                          run meson test in DIR and count TAP test by test; a suite of SUITES
                          (unit,engine,...) without a test is a failure
  skip LABEL WHY          record a step that cannot run here
  sum                     print a table of the steps, with the seconds that each took and those
                          of the processors that it used, and "N passed, N failed, N skipped"

run and meson show the output of failed tests and then end with 1; sum ends with 1 if anything
failed or nothing passed."""
import json
import pathlib
import re
import resource
import subprocess
import sys
import time

SKIPPED = 77


def count_tap(text, status):
    """Count a TAP stream; return (passed, failed, skipped), or None for other text."""
    plan = re.search(r"^1\.\.(\d+)", text, re.M)
    if not plan:
        return None
    passed = failed = skipped = 0
    for line in re.findall(r"^(?:not )?ok\b.*$", text, re.M):
        if re.search(r"#\s*skip", line, re.I):
            skipped += 1
        elif line.startswith("ok"):
            passed += 1
        else:
            failed += 1
    failed += max(0, int(plan[1]) - passed - failed - skipped)
    if status not in (0, SKIPPED) and not failed:
        failed = 1
    if not passed and not failed and not skipped:
        skipped = 1
    return passed, failed, skipped


def count_files(text, status):
    found = re.findall(r"(\d+) of (\d+) files as expected", text)
    if not found:
        return None
    passed, total = sum(int(n) for n, _ in found), sum(int(m) for _, m in found)
    return passed, max(total - passed, int(status != 0)), 0


def count_pytest(text, status):
    """Count the last line of pytest, "1 failed, 2 passed, 3 skipped in 4.5s"."""
    lines = re.findall(r"^=* ?((?:\d+ \w+(?:, )?)+) in \d+\.\d+s\b.*$", text, re.M)
    if not lines:
        return None
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", lines[-1])}
    failed = sum(counts.get(word, 0) for word in ("failed", "error", "errors"))
    return (counts.get("passed", 0) + counts.get("xfailed", 0),
            max(failed, int(status != 0)), counts.get("skipped", 0))


def count(text, status):
    return (
        count_tap(text, status)
        or count_files(text, status)
        or count_pytest(text, status)
        or (int(status == 0), int(status not in (0, SKIPPED)), int(status == SKIPPED))
    )


def excerpt(text):
    """Return the failures of a TAP stream with their comments, and the end of the text."""
    MOST, END = 100, 40  # lines
    lines, failures, is_failure = text.splitlines(), [], False
    for line in lines[:-END]:
        is_failure = line.startswith("not ok") or (is_failure and line.startswith("#"))
        if is_failure:
            failures.append(line)
    return "\n".join([*failures[:MOST], *lines[-END:]])


def add(book, label, counts, since):
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {
        "label": label,
        "counts": counts,
        "seconds": time.monotonic() - since,
        "processor": used.ru_utime + used.ru_stime,
    }
    with open(book, "a") as f:
        f.write(json.dumps(row) + "\n")
    print(f"{label}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped", flush=True)
    return int(counts[1] != 0)


def run(book, label, command):
    since = time.monotonic()
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = p.stdout.decode(errors="replace")
    counts = count(text, p.returncode)
    if counts[1]:
        print(excerpt(text))
    return add(book, label, counts, since)


def suites_of(build):
    """Return the suites with a test in a build directory; none if the build is not configured."""
    command = ["meson", "introspect", "--tests", build]
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    tests = json.loads(p.stdout) if p.returncode == 0 else []
    return {suite.split(":")[-1] for t in tests for suite in t["suite"]}


def meson(book, label, build, suites, args):
    since = time.monotonic()
    missing = sorted(set(suites.split(",")) - suites_of(build))
    for suite in missing:
        print(f"{build} has no test of the suite {suite}: something that it needs was not found")
    name = re.sub(r"\W+", "-", label)
    logs = pathlib.Path(build, "meson-logs")
    for old in logs.glob(name + "*.json"):
        old.unlink()
    command = ["meson", "test", "-C", build, "--no-rebuild", "--logbase", name, *args]
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    found = list(logs.glob(name + "*.json"))  # a wrapper adds a suffix to the log's name
    tests = [json.loads(line) for log in found for line in log.read_text().splitlines()]
    total = [0, len(missing), 0]
    for t in tests:
        text, status = t.get("stdout") or "", t["returncode"]
        if t["result"] not in ("OK", "SKIP"):
            status = status or 1
            print(f"--- {t['name']}: {t['result']}\n{excerpt(text)}\n"
                  f"{(t.get('stderr') or '')[-4000:]}")
        total = [a + b for a, b in zip(total, count(text, status))]
    if not tests or (p.returncode and not total[1]):
        print(p.stdout.decode(errors="replace")[-4000:])
        total[1] = 1
    return add(book, label, total, since)


def show_sum(book):
    rows = [json.loads(line) for line in open(book)]
    print(f"\n{'step':<34} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>8}"
          f" {'processor':>9}")
    for r in rows:
        p, f, s = r["counts"]
        why = f"  {r['why']}" if "why" in r else ""
        print(f"{r['label']:<34} {p:>7} {f:>7} {s:>7} {r['seconds']:>8.1f}"
              f" {r.get('processor', 0):>9.1f}{why}")
    passed, failed, skipped = (sum(r["counts"][i] for r in rows) for i in range(3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return int(failed != 0 or passed == 0)


def main():
    book, action, *rest = sys.argv[1:]
    if action == "run":
        return run(book, rest[0], rest[1:])
    if action == "meson":
        return meson(book, rest[0], rest[1], rest[2], rest[3:])
    if action == "skip":
        with open(book, "a") as f:
            row = {"label": rest[0], "counts": [0, 0, 1], "seconds": 0, "why": rest[1]}
            f.write(json.dumps(row) + "\n")
        print(f"{rest[0]}: skipped, {rest[1]}")
        return 0
    return show_sum(book)


sys.exit(main())
