#!/usr/bin/env python3
"""check_bench.py: check how the bench prints, publishes and draws figures. TAP on stdout.

The figures are made up; nothing is measured."""
import contextlib
import io
import os
import pathlib
import sys
import types
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import builds  # noqa: E402
import harness  # noqa: E402
import publish  # noqa: E402
import ranks  # noqa: E402
import tap  # noqa: E402

ABOUT = {
    "date": "2026-01-02", "heft": "heft 1.2.3", "cpu": "A & B", "processors": 2, "memory": "3 GiB",
    "kernel": "Linux 6.1", "file_system": "ext4", "quick": False, "took": 61,
    "peers": {"zstd": "1.5"}
}


def made_up():
    """Return a report and its printed text."""
    r, out = harness.Report(), io.StringIO()
    with contextlib.redirect_stdout(out):
        r.begin("opening", "Opened.")
        r.faster("one", [1, 2, 3], [20, 44, 90], "jansson", 20, own=([7, 8, 9], "ms"))
        r.ratio("two", [2, 3, 5], [1, 2, 2], "bare loop", 1.4)
        r.missing("three", "ggml", 5, own=([4], "ms"))
        r.begin("scaling", "Grown.")
        for n in (1000, 1000000):
            r.add(f"mag, {n} tensors", [40, 50, 60], "ns/tensor")
            r.add(f"jansson on mag, {n} tensors", 2000, "ns/tensor", peer="jansson")
        r.begin("growing", "Copied.")
        for size in ("16 MiB", "8 GiB"):
            r.add(f"cp, {size}", [2, 3, 4], "GB/s")
    return r, out.getvalue()


def checks():
    """Yield (title, True if the check holds)."""
    report, printed = made_up()
    one, two, three = report.rows[:3]
    yield "a ratio is the median of the turns' ratios", one["median"] == 22 and one[
        "holds"] and one["own"] == 8
    yield "a limit that is passed is said", two[
        "median"] == 2 and two["holds"] is False and "OVER" in printed
    yield "a peer that is missing is said", three[
        "holds"] is None and "ggml is not installed" in printed
    results = {**ABOUT, "sections": report.sections, "figures": report.rows}
    text = "\n".join(publish.tables(results))
    row = "| one: speed / jansson | 22 x | 20 – 30 | ≥ 20 | within | 8 ms |"
    yield "the page has a row per figure", row in text
    yield "sizes are columns", "| mag | 50 | 50 | ns/tensor |" in text
    some = {**results, "date": "2026-02-03",
            "sections": [{"name": "opening", "about": "Opened."}, {"name": "new", "about": "New."}],
            "figures": [row for row in report.rows if row["section"] == "opening"]}
    page = publish.replaced("Intro.\n\n### opening\n\nold\n\n### scaling\n\nkept\n", some)
    yield "a run of some sections replaces these", (
        row in page and "old" not in page and "Opened. Measured on 2026-02-03." in page
        and page.startswith("Intro.\n\n### opening") and page.endswith("### scaling\n\nkept"))
    some["sections"] = [{"name": "new", "about": "New."}]
    some["figures"] = [{**row, "section": "new"} for row in some["figures"]]
    page = publish.replaced("Intro.\n\n### scaling\n\nkept\n", some)
    yield "a new section is appended", page.index("kept") < page.index("### new")
    yield "limits are counted", "Within their limit: 1 figures; over it: 1." in text
    picture = xml.etree.ElementTree.fromstring(publish.draw(results, publish.describe(results)))
    tags = [element.tag.rsplit("}", 1)[-1] for element in picture.iter()]
    texts = [element.text or "" for element in picture.iter()]
    yield "a line for each, a point for each figure", tags.count("polyline") == 3 and tags.count(
        "circle") == 6
    yield "axes have units", {"1,000,000", "8 GiB", "GB/s", "nanoseconds per tensor"} <= set(texts)
    yield "the machine and the day are named", any("A & B" in line and "2026-01-02" in line
                                                   for line in texts)
    yield "equal values share a rank", ranks.ranks([3, 1, 3, 2]) == [3.5, 1, 3.5, 2]
    # U is 0, its mean 32, its variance 8 * 8 * 17 / 12: z is 31.5 / 9.522.
    yield "the chance is that of Mann-Whitney", abs(
        ranks.chance(list(range(8)), list(range(8, 16))) - 0.000939) < 1e-5
    slow, fast = [1.1, 1.11, 1.12, 1.1, 1.13, 1.1, 1.12, 1.11], [1.0, 1.01, 1.02] * 3
    yield "a slower build is said", ranks.verdict(slow, fast)[1] == "slower"
    yield "a faster build is said", ranks.verdict(fast, slow)[1] == "faster"
    yield "equal builds differ by noise", ranks.verdict(fast, fast[::-1])[1] == "within noise"
    yield "nothing to draw is no picture", publish.draw({**results, "figures": report.rows[:3]},
                                                        "") is None


def named(**variables):
    """Return the peers of these variables, or the message of the refusal."""
    unset = {name: "" for name in builds.VARIABLES.values()}
    with mock.patch.dict(os.environ, {**unset, **variables}):
        try:
            return builds.named()
        except SystemExit as refusal:
            return str(refusal)


def opened_rows(measure, peer_seconds):
    """Return the rows of a measurement of opening, and the tensor counts that Heft opened: Heft
    takes 0.1 s, the peer `peer_seconds`."""
    counts = []
    inputs = types.SimpleNamespace(drop=lambda *_: None,
                                   index=lambda _, n: counts.append(n) or f"{n}")
    report = harness.Report()
    with mock.patch.multiple(builds, opened=lambda _: [[0.1]],
                             ask=lambda *_: [[peer_seconds]]), \
            contextlib.redirect_stdout(io.StringIO()):
        report.begin("peers", "Peers.")
        measure(report, inputs, "peer", False)
    return report.rows, counts


def peer_checks():
    """Yield (title, True if the check holds) for peers that variables name."""
    yield "no variable, no peer", named() == {}
    yield "a variable names a peer", named(HEFT_PEER_ZT=sys.executable) == {"zt": sys.executable}
    yield "a wrong variable is refused", named(HEFT_PEER_ZT="/missing/program").startswith(
        "HEFT_PEER_ZT=/missing/program: this file is not a program")
    yield "a missing library is refused", named(HEFT_PEER_GGML="/missing/library").startswith(
        "HEFT_PEER_GGML=/missing/library: this file is not a library")
    (row,), counts = opened_rows(builds.open_safetensors, 0.6)
    yield "six times the speed is within the limit", abs(row["median"] - 6) < 1e-9 and row["holds"]
    yield "a million tensors are opened", counts == [1_000_000]
    (row,), _ = opened_rows(builds.open_safetensors, 0.4)
    yield "four times the speed is over the limit", row["holds"] is False
    rows, counts = opened_rows(builds.open_gguf, 1.0)
    yield "a fast ggml opens a million tensors", len(rows) == 2 and counts == [100_000, 1_000_000]
    rows, counts = opened_rows(builds.open_gguf, 60.0)
    yield "a slow ggml opens fewer tensors", len(rows) == 1 and counts == [100_000]
    report = harness.Report()
    with contextlib.redirect_stdout(io.StringIO()):
        report.begin("peers", "Peers.")
        builds.missing(report, {"ggml": "peer"})
    yield "peers without a variable are missing", [
        (row["peer"], row["limit"]) for row in report.rows
    ] == [("safetensors core", 5), ("zt", 1.5), ("zt", 2)]


if __name__ == "__main__":
    sys.exit(tap.report((title, [] if holds else ["the check does not hold"])
                        for title, holds in [*checks(), *peer_checks()]))
