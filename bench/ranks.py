"""ranks.py - compare two lists of times by their ranks (Mann-Whitney)."""
import math
import statistics

NOISE = 0.02  # a smaller difference of the medians is not reported
CHANCE = 0.01  # accepted chance of a verdict about two equal builds


def ranks(values):
    """Return the rank of each value from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, i = [0.0] * len(values), 0
    while i < len(order):
        end = i
        while end < len(order) and values[order[end]] == values[order[i]]:
            end += 1
        for k in order[i:end]:
            found[k] = (i + 1 + end) / 2
        i = end
    return found


def chance(a, b):
    """Return the chance of ranks as far apart if a and b come from one distribution: two-sided
    Mann-Whitney test, normal approximation with corrections for ties and for continuity."""
    n, m, both = len(a), len(b), [*a, *b]
    larger = sum(ranks(both)[:n]) - n * (n + 1) / 2  # pairs in which a is larger
    ties = sum(both.count(v)**3 - both.count(v) for v in set(both))
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    z = (abs(larger - n * m / 2) - 0.5) / math.sqrt(variance)
    return math.erfc(max(z, 0) / math.sqrt(2))


def verdict(ours, theirs):
    """Return (ratio of the median times, "faster", "slower" or "within noise")."""
    ratio = statistics.median(ours) / statistics.median(theirs)
    if abs(ratio - 1) < NOISE or chance(ours, theirs) >= CHANCE:
        return ratio, "within noise"
    return ratio, "faster" if ratio < 1 else "slower"
