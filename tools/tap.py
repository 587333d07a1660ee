"""tap.py - print results of a check as TAP, for Meson and tally.py."""


def report(results):
    """Print (title, complaints) pairs; return exit status 1 if there are complaints."""
    results = list(results)
    print(f"1..{len(results)}")
    for n, (title, complaints) in enumerate(results, 1):
        print(f"{'not ok' if complaints else 'ok'} {n} - {title}")
        for complaint in complaints:
            for line in str(complaint).splitlines():
                print("#  ", line)
    return int(any(complaints for _, complaints in results))
