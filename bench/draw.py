"""draw.py - draw cost against size from the results of run.py, for light and dark pages."""
import math
import re
from html import escape

WIDTH, HEIGHT, LEFT, TOP, LEGEND, BELOW = 330, 270, 72, 52, 185, 104
PARSERS = {"jansson on ": "jansson (JSON): ", "libcbor on ": "libcbor (CBOR): "}
COLOURS = [
    "#3b82c4", "#e0526a", "#2e9b57", "#b8860b", "#8a63d2", "#d2691e", "#1f9e9e", "#c2569b",
    "#808080"
]
UNITS = {"MiB": 1 << 20, "GiB": 1 << 30}
STYLE = """
.page{fill:#fff}.t{font-size:16px;font-weight:600}.e{text-anchor:end}.m{text-anchor:middle}
text{fill:#1f2328}.g{stroke:#d8dee4}.f{stroke:#59636e;fill:none}.s{fill:#59636e}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117}text{fill:#e6edf3}.g{stroke:#30363d}.f{stroke:#9198a1}.s{fill:#9198a1}}
"""


def series(figures, section, pattern):
    """Return {label: [(x, median, low, high)]} of rows that match a pattern with label and size."""
    found = {}
    for row in figures:
        fits = re.fullmatch(pattern, row["what"])
        if row["section"] == section and fits and row["median"]:
            x = int(fits["size"]) * UNITS.get(fits.groupdict().get("unit"), 1)
            found.setdefault(fits["label"], []).append((x, row["median"], row["min"], row["max"]))
    return {label: sorted(points) for label, points in found.items()}


def short(x):
    """Format a size: 16 MiB, 8 GiB, or 10,000."""
    for unit in ("GiB", "MiB"):
        if x >= UNITS[unit] and x % UNITS[unit] == 0:
            return f"{x // UNITS[unit]} {unit}"
    return f"{x:,}"


def ticks(low, high):
    """Yield 1, 2 and 5 times powers of ten in a range."""
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for digit in (1, 2, 5):
            if low <= digit * 10 ** power <= high:
                yield digit * 10 ** power


def kind_of(label):
    """Return the format in a label ("jansson on safetensors"); it determines the colour."""
    return label.split(" on ")[-1]


class Chart:
    """Lines over logarithmic axes; labels in `peers` are dashed."""

    def __init__(self, title, axes, lines, peers):
        self.top, self.title = TOP, title
        self.axes, self.lines, self.peers = axes, lines, peers
        self.kinds = list(dict.fromkeys(kind_of(label) for label in lines))
        self.xs = sorted({p[0] for points in lines.values() for p in points})
        self.low = min(p[2] for points in lines.values() for p in points) / 1.15
        self.high = max(p[3] for points in lines.values() for p in points) * 1.15

    def x(self, value):
        low, high = math.log(self.xs[0]), math.log(self.xs[-1])
        return LEFT + 14 + (math.log(value) - low) / ((high - low) or 1) * (WIDTH - 28)

    def y(self, value):
        low, high = math.log(self.low), math.log(self.high)
        return self.top + HEIGHT - (math.log(value) - low) / (high - low) * HEIGHT

    def frame(self):
        bottom = self.top + HEIGHT
        yield f'<text x="{LEFT}" y="{self.top - 18}" class="t">{escape(self.title)}</text>'
        for value in ticks(self.low, self.high):
            y = self.y(value)
            yield f'<path d="M{LEFT} {y:.1f}h{WIDTH}" class="g"/>'
            yield f'<text x="{LEFT - 9}" y="{y + 4.5:.1f}" class="e">{value:,g}</text>'
        for value in self.xs:
            x = self.x(value)
            yield f'<path d="M{x:.1f} {bottom}v5" class="f"/>'
            to_last = self.x(self.xs[-1]) - x
            if not 0 < to_last < 45:  # no overlap with the last label
                yield f'<text x="{x:.1f}" y="{bottom + 21}" class="m">{short(value)}</text>'
        yield f'<rect x="{LEFT}" y="{self.top}" width="{WIDTH}" height="{HEIGHT}" class="f"/>'
        yield (f'<text x="{LEFT + WIDTH // 2}" y="{bottom + 42}" class="m s">'
               f'{escape(self.axes[0])}</text>')
        yield (f'<text transform="translate(18 {self.top + HEIGHT // 2}) rotate(-90)" class="m s">'
               f'{escape(self.axes[1])}</text>')

    def line(self, label, points, colour, at):
        """Draw a line, and its legend entry at height `at`."""
        dash = ' stroke-dasharray="6 4"' if label.startswith(self.peers) else ""
        path = " ".join(f"{self.x(p[0]):.1f},{self.y(p[1]):.1f}" for p in points)
        yield f'<g stroke="{colour}" fill="none" stroke-width="2"><polyline points="{path}"{dash}/>'
        for x, _, low, high in points:
            yield (f'<path d="M{self.x(x):.1f} {self.y(low):.1f}V{self.y(high):.1f}" '
                   'stroke-width="1.2"/>')
        yield f'<path d="M{LEFT + WIDTH + 14} {at - 4}h24"{dash}/></g>'
        for x, median, _, _ in points:
            yield f'<circle cx="{self.x(x):.1f}" cy="{self.y(median):.1f}" r="3" fill="{colour}"/>'
        for name, kind in PARSERS.items():
            label = label.replace(name, kind)
        yield f'<text x="{LEFT + WIDTH + 45}" y="{at}">{escape(label)}</text>'

    def draw(self):
        """Draw the chart; the legend is in the order of the lines' last points."""
        yield from self.frame()
        order = sorted(self.lines.items(), key=lambda entry: -entry[1][-1][1])
        for i, (label, points) in enumerate(order):
            colour = COLOURS[self.kinds.index(kind_of(label)) % len(COLOURS)]
            yield from self.line(label, points, colour, self.top + 12 + 21 * i)


def draw(results, about):
    """Return the picture, or None without the sections scaling and growing."""
    wanted = [
        ("Opening a file: time per tensor", ("tensors in the file", "nanoseconds per tensor"),
         series(results["figures"], "scaling",
                r"(?P<label>.+), (?P<size>\d+) tensors"), ("jansson", "libcbor")),
        ("Working on the payload: speed", ("payload", "GB/s"),
         series(results["figures"], "growing",
                r"(?P<label>.+), (?P<size>\d+) (?P<unit>MiB|GiB)"), ("cp", "sum")),
    ]
    charts = [Chart(*chart) for chart in wanted if chart[2]]
    if not charts:
        return None
    each, high = LEFT + WIDTH + LEGEND, TOP + HEIGHT + BELOW
    body = "\n".join(
        "\n".join([f'<g transform="translate({i * each} 0)">', *chart.draw(), "</g>"])
        for i, chart in enumerate(charts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {each * len(charts)} {high}" '
        f'width="{each * len(charts)}" height="{high}" '
        'font-family="system-ui,sans-serif" font-size="13" role="img">\n'
        f"<title>Cost against size</title>\n<style>{STYLE}</style>\n"
        f'<rect width="{each * len(charts)}" height="{high}" class="page"/>\n{body}\n'
        f'<text x="{LEFT}" y="{high - 34}" class="s" font-size="12">{escape(about)}.</text>\n'
        f'<text x="{LEFT}" y="{high - 16}" class="s" font-size="12">Both axes logarithmic; '
        f'median, lowest and '
        "highest of the turns; dashed: other programs.</text>\n</svg>\n")
