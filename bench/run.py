#!/usr/bin/env python3
"""run.py [--quick] [--only SECTION,...] [--dir DIR] [--publish] [--check]: measure Heft against
limits and peers.

Compared programs run in turns, A B A B; the first turn is dropped. A figure is the median of the
other turns, with the minimum and the maximum. A ratio is the median of the ratios of each turn, so
a slow drift of the machine has no effect. Runs during which the host reclaims memory are repeated.
Inputs are made in DIR (build/bench) and removed. Results are also written to bench/results.json. A
row has the figure, minimum and maximum, limit, verdict, and, for ratios, the figure of Heft."""
import argparse
import os
import signal
import sys
import tempfile
import time

import adapters
import blends
import builds
import indexes
import kernels
import mapped_models
import others
import payloads
import publish
import quantised
import ranks_of_run
import servers
import sets
import slow_files
from harness import BUILD, GIB, RESULTS, Report, machine, warm_memory
from inputs import Inputs, formats_written

SECTIONS = [
    indexes.opening, indexes.scaling, indexes.listing, indexes.ggml, indexes.finding,
    sets.sets,
    payloads.verifying, payloads.converting, payloads.replacing, payloads.sharing, payloads.memory,
    payloads.loading, payloads.cold, slow_files.slow_files, payloads.writing,
    ranks_of_run.gathering, mapped_models.maps, payloads.compressing, payloads.casting,
    kernels.kernels, payloads.decoding, payloads.encoding,
    quantised.quantising, quantised.dequantising, quantised.dequantising_large,
    adapters.merging, blends.blending,
    payloads.growing, servers.remote,
    others.python, others.package,
    others.tensors_in_python,
    others.hashing, others.summarising, others.comparing, others.deltas, others.parameters,
    others.embedding, others.browser, builds.peers
]
NAMES = [section.__name__ for section in SECTIONS]
LARGE = ["dequantising_large"]  # the files need more room and time than all others: only if named


def arguments():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--quick", action="store_true", help="fewer turns, smaller models")
    args.add_argument("--only", default="", metavar="SECTION,...", help=", ".join(NAMES))
    args.add_argument("--dir", default=str(BUILD / "bench"), help="where inputs are made")
    args.add_argument("--publish", action="store_true",
                      help="the tables and the picture of docs/performance.md")
    args.add_argument("--check", action="store_true", help="check these arguments and end")
    a = args.parse_args()
    a.wanted = a.only.split(",") if a.only else [n for n in NAMES if n not in LARGE]
    if set(a.wanted) - set(NAMES):
        args.error(f"there is no section {', '.join(sorted(set(a.wanted) - set(NAMES)))}")
    os.makedirs(a.dir, exist_ok=True)
    return a


def run(r, inputs, a):
    formats = formats_written(inputs)
    for section in SECTIONS:
        if section is builds.peers and section.__name__ in a.wanted and not builds.named():
            print(f"\n{builds.UNNAMED}")
        elif section.__name__ in a.wanted:
            r.begin(section.__name__, section.__doc__)
            section(r, inputs, formats, a.quick)
            r.end()


def main():
    a, began = arguments(), time.perf_counter()
    if a.check:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run the clean-up of temporary files
    builds.named()  # report a wrong variable before the measurements
    r, about = Report(), {**machine(a.dir), "quick": a.quick}
    print(publish.describe(about))
    if a.quick:
        print(
            "quick: a tenth of the tensors and of the bytes that the sections name, fewer "
            "formats, fewer turns"
        )
    warm_memory(GIB if a.quick else 10 * GIB)
    try:
        with tempfile.TemporaryDirectory(prefix="tmp", dir=a.dir) as directory:
            run(r, Inputs(directory), a)
    finally:
        r.write(RESULTS,
                {**about, "peers": publish.peers(), "took": round(time.perf_counter() - began)})
    over = [row for row in r.rows if row["holds"] is False]
    print(f"\n{len(r.rows)} figures in {time.perf_counter() - began:.0f} s, "
          f"{sum(row['holds'] is True for row in r.rows)} within their limit, {len(over)} over it"
          f"{':' if over else ''}")
    for row in over:
        print(f"  {row['section']}, {row['what']}")
    print(f"written to {RESULTS.relative_to(BUILD.parent)}")
    if a.publish:
        publish.publish(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
