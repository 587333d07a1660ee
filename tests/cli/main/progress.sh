# The bar stays on one line of the terminal, however narrow that is or becomes.
$PYTHON - <<'P'
import multiprocessing, os, re, sys, unicodedata
import terminal, traced
from samples import write_safetensors
if traced.SKIP:
    sys.exit(print(traced.SKIP) or 77)

write_safetensors("in.safetensors", {"x": ("U8", [5 << 20], bytes(5 << 20))})
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
SLOW = ["strace", "-f", "-o", "/dev/null", "-e", "inject=pwrite64:delay_enter=110000:when=1..%d"]
NAMES = {"short": "out.mag", "long": 30 * "long" + ".mag", "wide": 40 * "\u5bbd" + ".mag"}

def width(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)

def fits_percentage(line):
    """Tell whether a part of the bar is full that is as large as the percentage says."""
    bar = re.search(r"\[([# ]+)\] *(\d+)%", line)
    return not bar or abs(100 * bar[1].count("#") / len(bar[1]) - int(bar[2])) < 100 / len(bar[1]) + 1

def plain(text):
    """Figures depend on the machine."""
    text = re.sub(r" *\d+%  [\d.]+ .*?/s  \d+:\d\d left", " N%  RATE  TIME", text)
    return re.sub(r"[# ]{24}", "BAR", re.sub(r" *\d+%  \d+:\d\d left", " N%  TIME", text))

def convert(name, columns, later=None):
    folder = f"{name}-{columns}-{later}"
    os.mkdir(folder)
    slow = [a.replace("%d", "20" if later else "9") for a in SLOW]
    text, code = terminal.run([*slow, traced.HEFT, "convert", "-j1", "in.safetensors", f"{folder}/{NAMES[name]}"],
                              columns, later)
    drawn = [t for t in text.split("\r\x1b[K") if t]
    narrow = later or columns
    fits = all(map(fits_percentage, drawn))
    fits = fits and "\n" not in text and all(width(t) < columns for t in drawn) and width((drawn or [""])[-1]) < narrow
    return folder, code, fits, repr(plain(drawn[-1])) if narrow in (80, 20) else ""

ROWS = [(name, columns) for name in NAMES for columns in (200, 80, 40, 20, 5, 1)]
with multiprocessing.get_context("fork").Pool(8) as pool:
    for row in pool.starmap(convert, [*ROWS, ("short", 80, 20)]):
        print(*row)
P
