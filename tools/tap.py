"""tap.py - results of a check as TAP, which Meson and tally.py count."""


def report(results):
    """Prints (title, complaints) pairs; returns the exit status: 1 when there is a complaint."""
    results = list(results)
    print(f"1..{len(results)}")
    for n, (title, complaints) in enumerate(results, 1):
        print(f"{'not ok' if complaints else 'ok'} {n} - {title}")
        for line in complaints:
            print("#  ", line)
    return int(any(complaints for _, complaints in results))
