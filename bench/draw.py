#!/usr/bin/env python3
"""draw.py RESULTS OUT.svg: cost against size, from what run.py wrote."""
import json
import math
import re
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 300, 62, 46, 250
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#bb5500"]
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}


def series(figures, section, pattern):
    """{label: [(x, median, low, high)]} of the rows whose text fits, which names label and size."""
    found = {}
    for row in figures:
        fits = re.fullmatch(pattern, row["what"])
        if row["section"].startswith(section + ":") and fits:
            x = int(fits["size"]) * UNITS.get(fits.groupdict().get("unit"), 1)
            found.setdefault(fits["label"], []).append((x, row["median"], row["min"], row["max"]))
    return {label: sorted(points) for label, points in found.items()}


def short(x):
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if x >= size and x % size == 0:
            return f"{x // size} {unit}"
    return f"10^{round(math.log10(x))}"


class Chart:
    def __init__(self, left, title, lines):
        self.left, self.title, self.lines = left, title, lines
        self.xs = sorted({p[0] for points in lines.values() for p in points})
        self.top = max(p[1] for points in lines.values() for p in points) * 1.1

    def x(self, value):
        low, high = math.log(self.xs[0]), math.log(self.xs[-1])
        return self.left + (math.log(value) - low) / ((high - low) or 1) * WIDTH

    def y(self, value):
        return TOP + HEIGHT - min(value, self.top) / self.top * HEIGHT

    def axes(self):
        yield f'<text x="{self.left}" y="{TOP - 16}" class="t">{self.title}</text>'
        step = 10 ** math.floor(math.log10(self.top))
        step = step / 2 if self.top / step < 3 else step
        for i in range(int(self.top / step) + 1):
            y = self.y(i * step)
            yield f'<path d="M{self.left} {y:.1f}h{WIDTH}" class="g"/>'
            yield f'<text x="{self.left - 8}" y="{y + 4:.1f}" class="r">{i * step:g}</text>'
        for x in self.xs:
            yield f'<text x="{self.x(x):.1f}" y="{TOP + HEIGHT + 20}" class="m">{short(x)}</text>'

    def draw(self):
        yield from self.axes()
        for i, (label, points) in enumerate(self.lines.items()):
            colour, at = COLOURS[i % len(COLOURS)], TOP + 14 + 18 * i
            path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y, _, _ in points)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            for x, _, low, high in points:
                yield (f'<path d="M{self.x(x):.1f} {self.y(low):.1f}V{self.y(high):.1f}" stroke="{colour}" '
                       'opacity="0.5"/>')
            legend = self.left + WIDTH + 12
            yield f'<path d="M{legend} {at - 4}h18" stroke="{colour}" stroke-width="3"/>'
            yield f'<text x="{legend + 24}" y="{at}">{label}</text>'


def main():
    results = json.load(open(sys.argv[1], encoding="utf-8"))
    figures = results["figures"]
    wanted = [
        ("Opening: ns per tensor, by number of tensors",
         series(figures, "scaling", r"(?P<label>.+), (?P<size>\d+) tensors")),
        ("Payload: GB/s, by size",
         series(figures, "growing", r"(?P<label>.+), (?P<size>\d+) (?P<unit>MiB|GiB)")),
    ]
    charts = [Chart(LEFT + i * (WIDTH + GAP), title, lines)
              for i, (title, lines) in enumerate((t, l) for t, l in wanted if l)]
    if not charts:
        sys.exit("these results have neither of the sections scaling and growing")
    body = "\n".join(line for chart in charts for line in chart.draw())
    about = f"{results['date']}, {results['heft']}, {results['cpu']}, {results['processors']} processors"
    wide, high = charts[-1].left + WIDTH + GAP - 40, TOP + HEIGHT + 64
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
                  'font-family="sans-serif" font-size="12">\n'
                  '<style>.t{font-size:15px;font-weight:bold}.r{text-anchor:end}.m{text-anchor:middle}'
                  '.g{stroke:#ddd}</style>\n'
                  f'<rect width="{wide}" height="{high}" fill="#fff"/>\n{body}\n'
                  f'<text x="{LEFT}" y="{high - 14}">{about}; median, lowest and highest</text>\n</svg>\n')


if __name__ == "__main__":
    main()
