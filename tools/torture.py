#!/usr/bin/env python3
"""torture.py [OPTION...] [HOURS]: run the long tests for HOURS (1) and record the figures.

A campaign is the long form of a test; campaigns.tsv has the commands. Campaigns run in slices; the
next slice belongs to the campaign with the least processor time so far. Slices are recorded as soon
as done, so that the next run continues; an interrupted slice is not recorded. The output of failed
slices is kept in .dev/torture.

  --only NAME,...     leave out other campaigns
  --slice SECONDS     length of a slice (300)
  --jobs N            slices that run at the same time (as many as processors)
  --campaigns FILE    instead of tools/campaigns.tsv
  --slices N          end after N slices
  --book FILE         where slices are recorded (.dev/torture.jsonl)
  --list              print the campaigns and their figures so far
  --publish           add the recorded slices to docs/reliability.tsv and replace the figures of
                      docs/reliability.md; run nothing
  --page FILE         instead of docs/reliability.md and its .tsv

The exit status is 1 if a slice failed."""
import argparse
import collections
import concurrent.futures
import csv
import datetime
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: written by tools/torture.py -->", "<!-- end of figures -->"
FIELDS = ["date", "commit", "campaign", "slices", "cases", "cpu", "failures"]
AIM_CASES, AIM_SECONDS = 10**8, 4 * 3600  # a fuzz target needs only one

Campaign = collections.namedtuple("Campaign", "name kind cases title command")


def campaigns_of(path):
    """Return the campaigns of the table. Commands of the kind "seconds" take --seconds and --seed;
    "full" commands take --full and run once per commit; "plain" commands run once per commit and
    print no figures."""
    with open(path, newline="") as f:
        rows = csv.reader((n for n in f if not n.startswith("#")), delimiter="\t")
        return [Campaign(*row[:4], shlex.split(row[4])) for row in rows if row]


def commit():
    said = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=10"], cwd=TOP,
                          check=False, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


# ---- figures so far ----------------------------------------------------------------------------


def slices_of(book):
    return [json.loads(n) for n in book.read_text().splitlines()] if book.exists() else []


def published_rows(path):
    if not path.exists():
        return []
    with open(path, newline="") as f:
        return [{k: int(v) if k in FIELDS[3:] else v for k, v in row.items()}
                for row in csv.DictReader(f, delimiter="\t")]


def rows_of(slices):
    """Sum slices by date, commit and campaign, as published rows."""
    rows = {}
    for s in slices:
        key = s["date"], s["commit"], s["campaign"]
        row = rows.setdefault(key, dict(zip(FIELDS, key), slices=0, cases=0, cpu=0, failures=0))
        row["slices"] += 1
        for field in ("cases", "cpu", "failures"):
            row[field] += s[field]
    return [dict(row, cpu=round(row["cpu"])) for row in rows.values()]


# ---- running -----------------------------------------------------------------------------------


class Runs:
    """The queue of campaigns; several threads may use the queue at the same time."""

    def __init__(self, campaigns, rows, book, options):
        self.lock, self.book, self.options = threading.Lock(), book, options
        self.campaigns, self.commit = campaigns, commit()
        self.cpu, self.slices, self.done = collections.Counter(), collections.Counter(), set()
        for row in rows:
            self.cpu[row["campaign"]] += row["cpu"]
            self.slices[row["campaign"]] += row["slices"]
            self.done.add((row["campaign"], row["commit"]))
        self.end = time.monotonic() + options.hours * 3600
        self.left, self.failures = options.slices, 0
        self.children, self.stopped = set(), False

    def next(self):
        """Return the next campaign and a seed, or None when nothing is left."""
        with self.lock:
            if time.monotonic() >= self.end or not self.left or self.stopped:
                return None
            left = [c for c in self.campaigns
                    if c.kind == "seconds" or (c.name, self.commit) not in self.done]
            if not left:
                return None
            chosen = min(left, key=lambda c: self.cpu[c.name])
            self.cpu[chosen.name] += self.options.slice  # until the slice ends and is measured
            self.slices[chosen.name] += 1
            self.left -= 1
            self.done.add((chosen.name, self.commit))
            return chosen, self.slices[chosen.name]

    def start(self, campaign, seed, seconds):
        """Start a slice in a session of its own, so that Ctrl-C reaches torture.py alone."""
        with self.lock:
            child = subprocess.Popen(arguments(campaign, seed, seconds), cwd=TOP,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, start_new_session=True)
            self.children.add(child)
            if self.stopped:
                os.killpg(child.pid, signal.SIGKILL)
        return child

    def stop(self):
        """Kill the slices that run; they are not recorded."""
        with self.lock:
            self.stopped = True
            for child in self.children:
                os.killpg(child.pid, signal.SIGKILL)

    def record(self, campaign, seed, figures, cpu, output):
        row = {"campaign": campaign.name, "commit": self.commit, "seed": seed, "cpu": round(cpu, 1),
               "date": datetime.date.today().isoformat(), **figures}
        with self.lock:
            self.cpu[campaign.name] += cpu - self.options.slice
            with open(self.book, "a") as f:
                f.write(json.dumps(row) + "\n")
            if row["failures"]:
                self.failures += row["failures"]
                log = self.book.parent / "torture" / f"{campaign.name}-{seed}.log"
                log.parent.mkdir(exist_ok=True)
                log.write_bytes(output)
                print(f"FAILED: {campaign.name}, seed {seed}: see {log}")
            print(f"{campaign.name}: {row['cases']} {campaign.cases}, {row['failures']} failures, "
                  f"{cpu:.0f} s of processor time", flush=True)


def arguments(campaign, seed, seconds):
    if campaign.kind == "seconds":
        return [*campaign.command, "--seconds", str(seconds), "--seed", str(seed)]
    return campaign.command + (["--full"] if campaign.kind == "full" else [])


def figures_of(campaign, output, status):
    """Read the JSON comment in the last line. Slices without a comment have been cut short."""
    text = output.decode(errors="replace")
    failed = len(re.findall(r"^not ok(?!.*# SKIP)", text, re.M))
    if campaign.kind == "plain":
        return {"cases": 1, "failures": int(status != 0)}
    last = re.search(r'^# (\{"campaign".*\})\s*\Z', text, re.M)
    figures = json.loads(last[1]) if last else {"cases": 0}
    figures.pop("campaign", None)
    bad = int(status != 0 or not last)
    return {**figures, "failures": max(figures.get("failures", 0), failed, bad)}


def work(runs):
    while (chosen := runs.next()):
        campaign, seed = chosen
        seconds = max(1, min(runs.options.slice, int(runs.end - time.monotonic())))
        with runs.start(campaign, seed, seconds) as p:
            output = p.stdout.read()
            with runs.lock:
                runs.children.remove(p)
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        if runs.stopped:
            return
        figures = figures_of(campaign, output, p.returncode)
        runs.record(campaign, seed, figures, used.ru_utime + used.ru_stime, output)


def stop_once(runs):
    """Stop the slices; a second signal ends this program at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    runs.stop()


def run(campaigns, rows, book, options):
    runs = Runs(campaigns, rows, book, options)
    # An exception could be raised while the pool starts a thread, and would be lost there.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop_once(runs))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(work, runs) for _ in range(options.jobs)]:
            done.result()
    return 128 + signal.SIGINT if runs.stopped else int(runs.failures != 0)


# ---- publishing --------------------------------------------------------------------------------


def hours(seconds):
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def table(campaigns, rows):
    yield "| campaign | cases | processor time | failures | last run |"
    yield "|---|---:|---:|---:|---|"
    for c in campaigns:
        mine = [row for row in rows if row["campaign"] == c.name]
        total = {f: sum(row[f] for row in mine) for f in ("cases", "cpu", "failures")}
        last = max(reversed(mine), key=lambda row: row["date"],
                   default={"date": "never", "commit": "-"})
        yield (f"| {c.title} | {total['cases']:,} {c.cases} | {hours(total['cpu'])} | "
               f"{total['failures']} | {last['date']}, {last['commit']} |")


def what_is_left(campaigns, rows):
    """Return a sentence about the fuzz targets that have not yet reached the aim."""
    left, targets = [], [c for c in campaigns if c.name.startswith("fuzz ")]
    for c in targets:
        mine = [row for row in rows if row["campaign"] == c.name]
        cases, cpu = (sum(row[f] for row in mine) for f in ("cases", "cpu"))
        if cases < AIM_CASES and cpu < AIM_SECONDS:
            left.append(AIM_SECONDS - cpu)
    return (f"The aim for each fuzz target is {AIM_CASES:,} executions, or {hours(AIM_SECONDS)} of "
            f"processor time: {len(targets) - len(left)} of {len(targets)} targets have reached "
            f"it, for the others {hours(sum(left))} are left at most.")


def publish(campaigns, rows, page, book):
    with open(page.with_suffix(".tsv"), "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter="\t", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    text = page.read_text()
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    lines = [*table(campaigns, rows), "", *textwrap.wrap(what_is_left(campaigns, rows), 120)]
    page.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{tail}")
    book.unlink(missing_ok=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__, add_help=False)
    p.add_argument("-h", "--help", action="help")
    p.add_argument("hours", nargs="?", type=float, default=1)
    p.add_argument("--only", default="")
    p.add_argument("--slice", type=int, default=300)
    p.add_argument("--slices", type=int, default=-1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--campaigns", type=pathlib.Path, default=TOP / "tools" / "campaigns.tsv")
    p.add_argument("--book", type=pathlib.Path, default=TOP / ".dev" / "torture.jsonl")
    p.add_argument("--list", action="store_true")
    p.add_argument("--publish", action="store_true")
    p.add_argument("--page", type=pathlib.Path, default=TOP / "docs" / "reliability.md")
    options = p.parse_args()
    options.book.parent.mkdir(exist_ok=True)
    campaigns = campaigns_of(options.campaigns)
    rows = published_rows(options.page.with_suffix(".tsv")) + rows_of(slices_of(options.book))
    if options.publish:
        return publish(campaigns, rows, options.page, options.book)
    if options.list:
        return print("\n".join(table(campaigns, rows)))
    wanted = [c for c in campaigns if not options.only or c.name in options.only.split(",")]
    return run(wanted, rows, options.book, options)


if __name__ == "__main__":
    sys.exit(main())
