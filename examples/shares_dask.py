#!/usr/bin/env python3
"""shares_dask.py [--scheduler ADDRESS] [--shares N] SOURCE TARGET: convert SOURCE to TARGET in
shares, on the workers of a dask cluster that all see the folder of both files.

Without --scheduler two workers start on this machine. A share that fails is tried again; a share that
was written before is not written again, so that the program can simply be run again."""
import argparse
import pathlib

import distributed
import heft


def convert_share(source, target, number, count):
    return heft.convert(source, target, share=(number, count), threads=1).missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--scheduler", metavar="ADDRESS")
    parser.add_argument("--shares", type=int, default=8)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    o = parser.parse_args()
    source, target = o.source.absolute(), o.target.absolute()
    with distributed.Client(o.scheduler or distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None)) as client:
        futures = [client.submit(convert_share, source, target, i, o.shares, pure=False, retries=2)
                   for i in range(1, o.shares + 1)]
        client.gather(futures)
    if not target.exists():  # a file system may show the last record late
        heft.convert(source, target, finish=True)
    print(target, "has", target.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
