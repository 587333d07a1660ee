#!/usr/bin/env python3
"""simulate_shares.py [--machines N] [--slow N] [--factor F] [--terabytes T] [--rate GBPS]

Simulate a conversion in shares on machines of different speed. Each machine takes the next share
when idle. Print the time for several numbers of shares, beside the time of perfect balance."""
import argparse
import heapq
import random

START = 1.0  # seconds to start a process and to plan
JITTER = 0.05  # standard deviation of the rate of a machine, as a part of the rate


def simulate(rates, share_bytes, shares):
    """Return the time in seconds at which the last share ends."""
    idle = [(0.0, i) for i in range(len(rates))]
    end = 0.0
    for _ in range(shares):
        at, machine = heapq.heappop(idle)
        at += START + share_bytes / rates[machine]
        end = max(end, at)
        heapq.heappush(idle, (at, machine))
    return end


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--machines", type=int, default=64)
    p.add_argument("--slow", type=int, default=3, help="machines with a lower rate")
    p.add_argument("--factor", type=float, default=3, help="how much lower")
    p.add_argument("--terabytes", type=float, default=10)
    p.add_argument("--rate", type=float, default=2, help="GB/s of a machine")
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    r = random.Random(o.seed)
    rates = [o.rate * 1e9 * max(0.1, r.gauss(1, JITTER)) for _ in range(o.machines)]
    for i in range(o.slow):
        rates[i] /= o.factor
    total = o.terabytes * 1e12
    ideal = total / sum(rates)
    print("shares\tseconds\tratio")
    for per_machine in (1, 2, 4, 8, 16, 32):
        shares = per_machine * o.machines
        seconds = simulate(rates, total / shares, shares)
        print(f"{shares}\t{seconds:.0f}\t{seconds / ideal:.2f}")


if __name__ == "__main__":
    main()
