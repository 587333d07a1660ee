#!/usr/bin/env python3
"""run.py [--quick] [--only SECTION,...] [--dir DIR]: what heft costs, beside its limits and peers.

Things that are compared run in turns, A B A B; the first turn is dropped.  A figure is the median of the
rest, with the lowest and the highest; a ratio is the median of the ratios of each turn, so that a machine
that drifts does not count.  Memory that a run will need is touched beforehand.  Inputs are made in DIR
(build/bench/tmp) and removed.  Results also go to build/bench/results.json."""
import argparse
import tempfile

import indexes
import payloads
from harness import BUILD, Inputs, Report, machine, warm_memory, written_formats

SECTIONS = [indexes.opening, indexes.scaling, indexes.listing, indexes.verifying, indexes.finding, indexes.texts,
            payloads.sweeping, payloads.converting, payloads.growing, payloads.loading, payloads.writing,
            payloads.compressing, payloads.casting, payloads.hashing, payloads.parameters,
            payloads.embedding]


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--quick", action="store_true", help="fewer turns, smaller models")
    args.add_argument("--only", default="", metavar="SECTION,...",
                      help=", ".join(section.__name__ for section in SECTIONS))
    args.add_argument("--dir", default=str(BUILD / "bench"), help="where inputs are made")
    a = args.parse_args()
    wanted = a.only.split(",") if a.only else [section.__name__ for section in SECTIONS]
    r, about = Report(), machine()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    warm_memory(a.quick)
    with tempfile.TemporaryDirectory(prefix="tmp", dir=a.dir) as directory:
        inputs = Inputs(directory)
        formats = written_formats(inputs)
        for section in SECTIONS:
            if section.__name__ in wanted:
                r.begin(f"{section.__name__}: {section.__doc__}")
                section(r, inputs, formats, a.quick)
    r.write(BUILD / "bench" / "results.json", {**about, "quick": a.quick})
    missed = sum(row["holds"] is False for row in r.rows)
    print(f"\n{len(r.rows)} figures, {sum(row['holds'] is True for row in r.rows)} limits hold, "
          f"{missed} missed; written to build/bench/results.json")


if __name__ == "__main__":
    main()
