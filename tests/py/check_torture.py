#!/usr/bin/env python3
"""check_torture.py: slices are recorded, continued, summed and published.  TAP on stdout."""
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import tap  # noqa: E402

SOUND = """#!/bin/sh
[ "$1 $3" = "--seconds --seed" ] || exit 9
echo 'ok 1 - all'
echo "# {\\"campaign\\": \\"sound\\", \\"cases\\": 1000, \\"failures\\": 0}"
"""
FAULTY = SOUND.replace("ok 1", "not ok 1").replace("sound", "faulty")
STOPPED = "#!/bin/sh\nkill -9 $$\n"
ENDLESS = "#!/bin/sh\necho $$ > \"$0.pid\"\nsleep 1000\n"
WHOLE = "#!/bin/sh\n[ \"$*\" = --full ] && echo '# {\"campaign\": \"whole\", \"cases\": 7}'\n"
KINDS = {"sound": "seconds", "faulty": "seconds", "stopped": "seconds", "whole": "full",
         "plain": "plain", "endless": "seconds"}
PAGE = """# Page

<!-- figures: written by tools/torture.py -->
old
<!-- end of figures -->
tail
"""


def fill(top):
    lines = []
    for name, text in (("sound", SOUND), ("faulty", FAULTY), ("stopped", STOPPED),
                       ("whole", WHOLE), ("plain", "#!/bin/sh\n"), ("endless", ENDLESS)):
        (top / name).write_text(text)
        (top / name).chmod(0o755)
        lines.append(f"{name}\t{KINDS[name]}\tthings\tThe {name} one\t{top / name}\n")
    (top / "campaigns.tsv").write_text("# a comment\n" + "".join(lines))
    (top / "page.md").write_text(PAGE)


def command(top, *args):
    return [sys.executable, TOP / "tools/torture.py", "--campaigns", top / "campaigns.tsv",
            "--book", top / "book", "--page", top / "page.md", "--slice", "1", "--jobs", "1", *args]


def torture(top, *args):
    return subprocess.run(command(top, *args), check=False, capture_output=True, text=True)


def interrupted(top, number):
    """Interrupt a slice; return the exit status, and whether the slice has ended unrecorded."""
    before, pid = (top / "book").read_text(), top / "endless.pid"
    pid.unlink(missing_ok=True)
    with subprocess.Popen(command(top, "--only", "endless"), stdout=subprocess.DEVNULL,
                          start_new_session=True) as p:
        while not (pid.exists() and pid.read_text()):
            time.sleep(0.01)
        p.send_signal(number)
        status = p.wait()
    ended = subprocess.run(["kill", "-0", pid.read_text().strip()], check=False,
                           capture_output=True).returncode != 0
    return status, ended and (top / "book").read_text() == before


def slices(top):
    return [json.loads(n) for n in (top / "book").read_text().splitlines()]


def check(top):
    """Yield the title and the complaints of each test."""
    outs = [torture(top, "--only", "sound", "--slices", "1") for _ in range(2)]
    rows = [(s["seed"], s["cases"]) for s in slices(top)]
    good = rows == [(1, 1000), (2, 1000)] and not any(out.returncode for out in outs)
    yield "slices are recorded and continued with the next seed", [] if good else [rows]
    outs = [torture(top, "--only", "whole,plain") for _ in range(2)]
    cases = sorted(s["cases"] for s in slices(top)[2:])
    good = cases == [1, 7] and not outs[0].returncode and not outs[1].stdout
    yield "complete campaigns run once per commit", [] if good else [cases, outs]
    for bad in ("faulty", "stopped"):
        out = torture(top, "--only", bad, "--slices", "1")
        good = out.returncode == 1 and (top / "torture" / f"{bad}-1.log").exists()
        yield f"a slice that is {bad} fails and keeps its output", [] if good else [out]
    got = [interrupted(top, n) for n in (signal.SIGINT, signal.SIGTERM)]
    yield "an interrupted slice ends and is not recorded", [] if got == 2 * [(130, True)] else [got]
    for _ in range(2):  # the second time nothing is new
        torture(top, "--publish")
    page = (top / "page.md").read_text()
    good = ("| The sound one | 2,000 things |" in page and "| The stopped one | 0 things" in page
            and "old" not in page and page.endswith("tail\n") and not (top / "book").exists())
    yield "figures are published", [] if good else page.splitlines()


def check_table():
    """Yield the title and the complaints of the test of the table in the tree."""
    lists = re.findall(r"^(?:models =|names [+=]=?) [^\[]*(\[.*)",
                       (TOP / "fuzz/meson.build").read_text(), re.M)
    targets = re.findall(r"'(\w+)'", " ".join(lists))
    table = (TOP / "tools/campaigns.tsv").read_text()
    missing = [t for t in targets if f"\nfuzz {t}\t" not in table]
    yield "every fuzz target has a campaign", missing


def main():
    with tempfile.TemporaryDirectory() as name:
        fill(pathlib.Path(name))
        return tap.report([*check(pathlib.Path(name)), *check_table()])


if __name__ == "__main__":
    sys.exit(main())
