"""tap.py - print results of a check as TAP, for Meson and tally.py."""
import sys


def report(results):
    """Print (title, complaints) pairs as they come; return 1 if any has complaints, otherwise 0."""
    n = failed = 0
    for n, (title, complaints) in enumerate(results, 1):
        print(f"{'not ok' if complaints else 'ok'} {n} - {title}")
        for complaint in complaints:
            for line in str(complaint).splitlines():
                print("#  ", line)
        sys.stdout.flush()
        failed += bool(complaints)
    print(f"1..{n}")
    return int(failed > 0)
