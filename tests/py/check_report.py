#!/usr/bin/env python3
"""check_report.py HEFT: `heft report`, its figures, and its page in a browser.

The figures are compared with those that Python computes from the same numbers. The page is opened
by Chromium, where chromium and chromium-driver are installed: with names that try to inject
scripts, with 100,000 tensors, in light and dark colours, and by keyboard. TAP on stdout."""
import base64
import hashlib
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import gen_ztensor1
import webdriver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

NAN = struct.unpack("<f", b"\0\0\xc0\x7f")[0]
HOSTILE = [
    "</script><script>window.injected=1</script>", "<img src=x onerror=window.injected=2>",
    "<!--<script>", "]]>", "\"><svg onload=window.injected=3>", "__proto__", "constructor",
    "{{7*7}}", "${window.injected=4}", "a\u202eb", "line\nbreak", "&lt;b&gt;", "'", "\\", "@DATA@",
    "nul\0"
]
# The page prints these names as the command does.
ESCAPED = {"a\u202eb": "a\\u202eb", "line\nbreak": "line\\nbreak", "\\": "\\\\",
           "nul\0": "nul\\x00"}


def safetensors(path, tensors, metadata=None):
    """Write tensors {name: (dtype, shape, bytes)}."""
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))
    return path


def floats(*values):
    return "F32", [len(values)], struct.pack(f"<{len(values)}f", *values)


class Pages:
    """Reports of files in a folder."""

    def __init__(self, heft, folder):
        self.heft, self.folder = heft, folder

    def run(self, *args, **how):
        return subprocess.run([self.heft, *map(str, args)], check=False, capture_output=True,
                              cwd=self.folder, **how)

    def write(self, file, *options):
        out = file.with_suffix(".html")
        p = self.run("report", file, "-o", out, "--force", *options)
        if p.returncode or p.stdout or p.stderr:
            raise RuntimeError(f"report {file.name} ended with {p.returncode}: {p.stderr[:300]}")
        return out


def document(page):
    """Return the JSON inside a page."""
    text = page.read_text(encoding="utf-8")
    inside = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(inside.group(1))


def tensors_of(doc):
    return [dict(zip(doc["columns"], row)) for row in doc["tensors"]]


def differs(what, got, want):
    if got != want:
        yield f"{what} is {got!r}, not {want!r}"


# ---- without a browser ----

def check_figures(pages):
    values = [0.0, -2.0, 6.0, 0.0, NAN, math.inf]
    file = safetensors(pages.folder / "figures.safetensors", {
        "a.weight": floats(*values), "a.bias": ("I64", [2], struct.pack("<2q", -5, 7)),
        "empty": ("F16", [0, 3], b"")}, {"license": "MIT", "big": "9007199254740993"})
    doc = document(pages.write(file))
    by_name = {t["name"]: t for t in tensors_of(doc)}
    weight = by_name["a.weight"]
    finite = [0.0, -2.0, 6.0, 0.0]
    mean = sum(finite) / 4
    deviation = math.sqrt(sum((v - mean)**2 for v in finite) / 4)
    for key, want in {"dtype": doc["dtypes"].index("f32"), "shape": [6], "bytes": 24,
                      "elements": 6, "count": 6, "min": -2.0, "max": 6.0, "mean": mean,
                      "zeros": 2, "nan": 1, "inf": 1}.items():
        yield from differs(f"{key} of a.weight", weight[key], want)
    if not math.isclose(weight["std"], deviation):
        yield f"the deviation is {weight['std']}, not {deviation}"
    yield from differs("sum of the bins", sum(weight["bins"]), 4)
    yield from differs("bins of an empty tensor", by_name["empty"]["bins"], [])
    yield from differs("metadata", dict(doc["metadata"]["rows"]),
                       {"license": "MIT", "big": "9007199254740993"})
    for key, want in {"name": file.name, "tensors": 3, "elements": 8, "bytes": 40}.items():
        yield from differs(f"{key} of the file", doc["file"][key], want)
    yield from differs("faults", doc["verify"]["faults"], 0)


def check_nested_metadata(pages):
    """GGUF metadata: arrays, long texts, and integers of 64 bits."""
    def string(s):
        return struct.pack("<Q", len(s)) + s

    def pair(key, kind, value):
        return string(key) + struct.pack("<I", kind) + value

    big = (1 << 64) - 1
    array = struct.pack("<IQ", 4, 3000) + struct.pack("<3000I", *range(3000))
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + pair(b"n", 10, struct.pack("<Q", big)) + \
        pair(b"list", 9, array) + pair(b"text", 8, string("é".encode() * 1500))
    file = pages.folder / "metadata.gguf"
    file.write_bytes(data + bytes(-len(data) % 32))
    rows = dict(document(pages.write(file))["metadata"]["rows"])
    yield from differs("a large integer", rows["n"], str(big))
    yield from differs("the end of a long text", rows["text"][998:], "éé... (3000 bytes)")
    yield from differs("an array", rows["list"],
                       str(list(range(3000)))[:2000] + "... (3000 values)")


def ztensor(path, attributes, tensors=()):
    """Write dense tensors (name, dtype, shape, bytes) and attributes as metadata."""
    f = gen_ztensor1.File("1.2")
    path.write_bytes(f.end(f.root({t[0]: f.dense(t) for t in tensors}, attributes)))
    return path


def check_much_metadata(pages):
    """Names of nested values are paths; long lists, texts and bytes are cut, further values are
    counted."""
    nested = {"map": {"one": 1, "two": {"three": [5, {"four": "x"}]}, "none": {}}, "after": 2,
              "list": list(range(25)), "lists": [[i] for i in range(22)],
              "text": "x" + "\u00e9" * 1500, "bytes": bytes(range(256)) * 10}
    metadata = document(pages.write(ztensor(pages.folder / "n.zt", nested)))["metadata"]
    rows = dict(metadata["rows"])
    yield from differs("paths", [n for n in rows if n.startswith(("map", "after"))],
                       ["map.one", "map.two.three.0", "map.two.three.1.four", "map.none", "after"])
    yield from differs("values", [rows[n] for n in ("map.one", "map.two.three.0", "after")],
                       ["1", "5", "2"])
    yield from differs("items of a list", [n for n in rows if n.startswith("list.")],
                       [f"list.{i}" for i in range(20)])
    yield from differs("items of a list of lists", [n for n in rows if n.startswith("lists.")],
                       [f"lists.{i}.0" for i in range(20)])
    yield from differs("values left out", metadata["omitted"], 5 + 2)
    yield from differs("a text cut before a character", rows["text"],
                       "x" + "\u00e9" * 999 + "... (3001 bytes)")
    hexadecimal = nested["bytes"].hex()
    yield from differs("bytes", rows["bytes"], f'"{hexadecimal[:1999]}... (2560 bytes)')
    many = {f"k{i}": i for i in range(5003)}
    metadata = document(pages.write(ztensor(pages.folder / "k.zt", many)))["metadata"]
    yield from differs("many values", (len(metadata["rows"]), metadata["omitted"]), (5000, 3))


def check_many_tensors(pages):
    """Pages with more findings than are listed; a folder with a slash at the end."""
    count, mark = 10003, b"\xcd\xab"
    file, out = pages.folder / "many.safetensors", pages.folder / "many.zt"
    safetensors(file, {f"{i:05d}": ("U8", [4], struct.pack("<H", i) + mark) for i in range(count)})
    pages.run("convert", "--digest", "crc32c", "--align", "64", file, out)
    data, end = out.read_bytes(), 64 * (count + 1)
    out.write_bytes(data[:end].replace(mark, b"\xcd\xac") + data[end:])
    doc = document(pages.write(out))
    verify = doc["verify"]
    yield from differs("tensors", [t["name"] for t in tensors_of(doc)],
                       [f"{i:05d}" for i in range(count)])
    yield from differs("findings", (verify["faults"], len(verify["rows"]), verify["omitted"]),
                       (count, 10000, 3))
    folder = pages.folder / "folder"
    folder.mkdir()
    safetensors(folder / "model.safetensors", {"w": floats(1.0)})
    pages.run("report", "folder//", "-o", "folder.html")
    yield from differs("name of a folder", document(pages.folder / "folder.html")["file"]["name"],
                       "folder")


def check_findings(pages):
    made = pages.run("convert", pages.folder / "figures.safetensors", "damaged.zt", "--digest",
                     "sha256")
    yield from differs("exit status of convert", made.returncode, 0)
    file = pages.folder / "damaged.zt"
    data = bytearray(file.read_bytes())
    data[data.index(struct.pack("<f", 6.0))] ^= 1
    file.write_bytes(data)
    verify = document(pages.write(file))["verify"]
    found = pages.run("verify", "--json", file)
    want = json.loads(found.stdout)["findings"]
    yield from differs("findings", verify["rows"], [
        [f["severity"], f["rule"], f["offset"], f["tensor"], f["text"]] for f in want])
    yield from differs("faults", verify["faults"], 1)
    compared = document(pages.write(file, pages.folder / "figures.safetensors"))["comparison"]
    yield from differs("differing values", [row[4] for row in compared["rows"]], [1])
    quick = document(pages.write(file, "--quick"))
    yield from differs("faults with --quick", quick["verify"]["faults"], 0)
    yield from differs("statistics with --quick", quick["has_statistics"], False)


def check_comparison(pages):
    a = safetensors(pages.folder / "a.safetensors", {
        "same": floats(1.0), "value": floats(1.0, 2.0), "gone": floats(5.0), "type": floats(3.0),
        "old": floats(7.0, 8.0, 9.0)})
    b = safetensors(pages.folder / "b.safetensors", {
        "same": floats(1.0), "value": floats(1.0, 4.0), "new": floats(6.0, 6.0),
        "type": ("F16", [1], struct.pack("<e", 3.0)), "moved": floats(7.0, 8.0, 9.0)})
    doc = document(pages.write(a, b))["comparison"]
    yield from differs("equal", doc["equal"], False)
    rows = {row[0]: row[1:5] for row in doc["rows"]}
    yield from differs("rows", rows, {
        "gone": ["only in A", "f32 [1]", None, None], "new": ["only in B", None, "f32 [2]", None],
        "moved": ["renamed", "old", "moved", None], "type": ["type", "f32 [1]", "f16 [1]", None],
        "value": ["values", "f32 [2]", "f32 [2]", 1]})
    value = next(row for row in doc["rows"] if row[0] == "value")
    want = [2.0, math.sqrt(2.0), 9 / math.sqrt(5 * 17)]
    if not all(math.isclose(got, w, rel_tol=1e-6) for got, w in zip(value[5:], want)):
        yield f"numbers of the values are {value[5:]}, not {want}"
    sparse = pages.folder / "sparse.zt"
    pages.run("convert", "--sparsify", "value=coo", a, sparse)
    doc = document(pages.write(sparse, a))["comparison"]
    picture = doc["pictures"][0]
    yield from differs("pictures with a sparse tensor", (
        picture["difference"], picture["a"]["rows"], picture["a"]["means"]), (None, 1, [1.0, 2.0]))
    rows = [row[:4] for row in doc["rows"]]
    yield from differs("rows with a sparse tensor", rows,
                       [["value", "layout", "f32 [2] sparse_coo", "f32 [2]"]])
    equal = document(pages.write(a, a))["comparison"]
    yield from differs("a file compared with itself", (equal["equal"], equal["rows"]), (True, []))
    p = pages.run("report", a, b, "-o", b, "--force")
    yield from differs("exit status with B as output", p.returncode, 2)


def matrix(rows, columns, value):
    values = [value(i) for i in range(rows * columns)]
    data = struct.pack(f"<{len(values)}f", *values)
    return ("F32", [rows, columns], data), list(struct.unpack(f"<{len(values)}f", data))


def means(values, rows, columns, side=40):
    """Return the means of the finite values of rectangles, line by line."""
    height, width = min(rows, side), min(columns, side)
    sums = [[0.0, 0] for _ in range(height * width)]
    # The last field whose first row, or column, is not beyond the place.
    line = [max(i for i in range(height) if -(-i * rows // height) <= r) for r in range(rows)]
    field = [max(i for i in range(width) if -(-i * columns // width) <= c) for c in range(columns)]
    for i, v in enumerate(values):
        if math.isfinite(v):
            place = sums[line[i // columns] * width + field[i % columns]]
            place[0] += v
            place[1] += 1
    return [s / n if n else None for s, n in sums]


def is_near(got, want):
    return len(got) == len(want) and all(
        g is None and w is None or g is not None and w is not None and
        math.isclose(g, w, rel_tol=1e-5, abs_tol=1e-12) for g, w in zip(got, want))


def check_pictures(pages):
    """Figures, maps and histograms of the tensors that differ, by the loops of this file."""
    rows, columns = 93, 57
    a, x = matrix(rows, columns, lambda i: math.sin(i))
    b, y = matrix(rows, columns, lambda i: NAN if i == 5 else math.inf if i == 6
                  else math.sin(i) + 0.01 * (i % 7))
    small = {f"s{i:02d}": floats(1.0, i) for i in range(70)}
    one = safetensors(pages.folder / "one.safetensors", {
        "w": a, "shape": floats(1.0, 2.0), "gone": floats(4.0), "empty": ("F32", [0, 3], b""),
        "c": ("C64", [2, 2], struct.pack("<8f", *range(8))), **small})
    two = safetensors(pages.folder / "two.safetensors", {
        "w": b, "shape": floats(1.0, 2.0, 3.0), "empty": ("F32", [0, 4], b""),
        "c": ("C64", [2, 2], struct.pack("<8f", *range(1, 9))),
        **{n: (t, s, d[:4] + struct.pack("<f", -struct.unpack("<2f", d)[1] - 2e4))
           for n, (t, s, d) in small.items()}})
    doc = document(pages.write(one, two))["comparison"]
    names = [doc["rows"][p["row"]][0] for p in doc["pictures"]]
    yield from differs("pictures", len(names), 64)
    if "gone" in names or not all(n[0] == "s" for n in names):
        yield f"pictures of tensors that differ less: {names}"
    few = {n: t for n, t in (("w", a), ("shape", floats(1.0, 2.0)), ("gone", floats(4.0)),
                             ("c", ("C64", [2, 2], struct.pack("<8f", *range(8)))),
                             ("empty", ("F32", [0, 3], b"")))}
    safetensors(one, few)
    doc = document(pages.write(one, two))["comparison"]
    byname = {doc["rows"][p["row"]][0]: p for p in doc["pictures"]}
    w = byname["w"]
    minus = [p - q for p, q in zip(x, y)]
    for key, values in (("a", x), ("b", y), ("difference", minus)):
        finite = [v for v in values if math.isfinite(v)]
        mean = math.fsum(finite) / len(finite)
        want = {"count": len(values), "min": min(finite), "max": max(finite),
                "nan": sum(map(math.isnan, values)), "inf": sum(map(math.isinf, values)),
                "rows": rows, "columns": columns, "height": 40, "width": 40}
        yield from differs(f"figures of {key}", {k: w[key][k] for k in want}, want)
        deviation = math.sqrt(math.fsum((v - mean)**2 for v in finite) / len(finite))
        if not is_near([w[key]["mean"], w[key]["std"]], [mean, deviation]):
            yield f"mean and deviation of {key} are {w[key]['mean']}, {w[key]['std']}"
        if not is_near(w[key]["means"], means(values, rows, columns)):
            yield f"the map of {key} is another one"
    yield from differs("kinds", [sorted(set(w[k].get("kinds", []))) for k in "ab"], [[], [0, 1, 2]])
    low, high = min(min(x), *filter(math.isfinite, y)), max(max(x), *filter(math.isfinite, y))
    yield from differs("the range of both", (w["min"], w["max"]), (low, high))
    for key, values in (("bins_a", x), ("bins_b", y)):
        bins = [0] * 64
        for v in filter(math.isfinite, values):
            bins[min(63, int((v / 2 - low / 2) * (64 / (high / 2 - low / 2))))] += 1
        yield from differs(key, w[key], bins)
    c = byname["c"]["difference"]
    yield from differs("complex numbers", (c["columns"], c["means"]), (4, [-1.0] * 8))
    yield from differs("other shapes", (byname["shape"]["difference"], byname["shape"]["shapes"]),
                       (None, [[2], [3]]))
    yield from differs("a tensor of one file", (byname["gone"]["b"], byname["gone"]["a"]["means"]),
                       (None, [4.0]))
    yield from differs("empty tensors", (byname["empty"]["a"]["count"], byname["empty"]["min"]),
                       (0, None))
    quick = document(pages.write(one, two, "--quick"))["comparison"]
    yield from differs("pictures with --quick", quick["pictures"], [])


def check_output(pages):
    file, out = pages.folder / "figures.safetensors", pages.folder / "report.html"
    before = file.read_bytes()
    for title, args, want, text in (
            ("the default name", [file], 0, b""), ("an existing page", [file], 2, b"--force"),
            ("--force", [file, "--force"], 0, b""),
            ("the input as output", [file, "-o", file, "--force"], 2, b"the input itself"),
            ("a folder", [file, "-o", pages.folder], 2, b"is a directory"),
            ("a missing file", ["none.zt", "-o", "x.html"], 4, b"No such file"),
            ("a page", [out, "-o", "x.html"], 3, b"")):
        p = pages.run("report", *args)
        yield from differs(f"exit status of {title}", p.returncode, want)
        if text not in p.stderr:
            yield f"message of {title}: {p.stderr!r}"
    yield from differs("the input", file.read_bytes(), before)
    yield from differs("other files", (pages.folder / "x.html").exists(), False)
    yield from differs("the page on stdout", pages.run("report", file, "-o", "-").stdout,
                       out.read_bytes())
    full = pages.run("report", file, "-o", "/dev/full")
    yield from differs("exit status on a full disk", full.returncode, 4)


def check_nothing_is_loaded(pages):
    text = pages.write(pages.folder / "figures.safetensors").read_text(encoding="utf-8")
    links = set(re.findall(r"\w+://[^\"'\s)]+", text)) - {"http://www.w3.org/2000/svg"}
    yield from differs("addresses in the page", links, set())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    if "default-src 'none'" not in policy or "unsafe" in policy:
        yield f"the policy is {policy}"


def check_names_are_text(pages):
    file = safetensors(pages.folder / "hostile.safetensors",
                       {n: floats(1.0, 2.0) for n in HOSTILE}, {n: n for n in HOSTILE})
    page = pages.write(file)
    yield from differs("number of scripts", page.read_text(encoding="utf-8").count("<script"), 2)
    yield from differs("names", sorted(t["name"] for t in tensors_of(document(page))),
                       sorted(HOSTILE))


# ---- in a browser ----

NAMES = """return [...document.querySelectorAll("#tensor-table tr[data-row]")]
  .map(r => r.cells[0].textContent)"""
TEXT = "return document.getElementById(arguments[0]).textContent"
FOCUS = "document.querySelector(arguments[0]).focus()"
SELECTED = "return document.querySelector('#detail h3')?.textContent ?? null"


def in_browser(pages, file, steps, *options, **how):
    """Open the page of a file and yield the complaints of steps(browser)."""
    with tempfile.TemporaryDirectory(dir=pages.folder) as profile, \
            webdriver.Browser(profile, **how) as browser:
        browser.open(pages.write(file, *options))
        yield from steps(browser)
        for message in browser.messages():
            yield f"console: {message}"


def check_hostile_page(pages):
    def steps(browser):
        yield from differs("window.injected", browser.run("return window.injected ?? null"), None)
        shown = [ESCAPED.get(name, name) for name in HOSTILE]
        yield from differs("names shown", sorted(browser.run(NAMES)), sorted(shown))
        yield from differs("keys shown", sorted(browser.run(NAMES.replace("tensor", "metadata"))),
                           sorted(shown))
        yield from differs("characters that are not printed", browser.run(
            "return [...document.body.innerText].filter(c => '\\u202e\\0'.includes(c)).length"), 0)
        for i in range(len(HOSTILE)):
            browser.run("document.querySelectorAll('#tensor-table tr[data-row]')"
                        "[arguments[0]].click()", i)
        yield from differs("window.injected after clicks",
                           browser.run("return window.injected ?? null"), None)
        yield from differs("elements from names", browser.run(
            "return document.querySelectorAll('img, #tensor-table svg[onload]').length"), 0)
    yield from in_browser(pages, pages.folder / "hostile.safetensors", steps)


CUT = """return [...document.querySelectorAll("td.number, th.number *")]
  .filter(c => c.scrollWidth > c.clientWidth).map(c => c.textContent)"""
CELLS = """return [...document.querySelectorAll("#tensor-table tr[data-row]")]
  .map(r => [...r.cells].map(c => c.textContent))"""
PAPER = """dispatchEvent(new Event("beforeprint"));
const rows = [...document.querySelectorAll("#tensor-table .paper tbody tr")]
  .map(r => r.cells[0].textContent);
dispatchEvent(new Event("afterprint"));
return [rows, document.querySelectorAll(".paper").length]"""


def check_numbers(pages):
    """Numbers are not cut, in a window and on paper, and digits alone are exact."""
    tiny = -4.656612873077393e-08
    tensors = {"date": ("F64", [2], struct.pack("<2d", 20231107.0, 20231107.0)),
               "large": ("F32", [1], struct.pack("<f", 3.4028234663852886e38))}
    for i in range(200):
        tensors[f"layers.{i:03d}.attention.weight"] = floats(tiny * (i + 1), 20231107.25 + i)
    file = safetensors(pages.folder / "numbers.safetensors", tensors,
                       {"chat_template": "first\nsecond"})

    def steps(browser):
        yield from differs("numbers that are cut", browser.run(CUT), [])
        yield from differs("pixels that the table scrolls sideways", browser.run(
            "const g = document.querySelector('#tensor-table .grid');"
            "return g.scrollWidth - g.clientWidth"), 0)
        rows = {row[0]: row for row in browser.run(CELLS)}
        yield from differs("the extrema of a date", rows["date"][5:7], ["20231107", "20231107"])
        yield from differs("the largest f32", rows["large"][6], "3.40282e38")
        yield from differs("a small number", rows["layers.000.attention.weight"][5], "-4.65661e-8")
        names, left = browser.run(PAPER)
        yield from differs("rows on paper", (len(names), left), (202, 0))
        yield from differs("colour without checksums",
                           browser.run("return document.getElementById('findings-text').className"),
                           "quiet")
        browser.run("document.querySelector('#metadata-table tr[data-row]').click()")
        yield from differs("a template", browser.run(
            "return document.querySelector('#metadata-detail pre').textContent"), "first\nsecond")
    yield from in_browser(pages, file, steps, width=1280)


def check_incomplete(pages):
    """A set with a missing shard is not shown as a whole model."""
    folder = pages.folder / "set"
    folder.mkdir()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    safetensors(folder / names[0], {"a": floats(1.0)})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict(zip("ab", names))}))
    doc = document(pages.write(index))["file"]
    yield from differs("missing shards", (doc["missing"], doc["missing_shards"]), ([names[1]], 1))

    def steps(browser):
        text = browser.run(TEXT, "missing")
        if "Only a part of the model" not in text or names[1] not in text:
            yield f"the page says {text!r}"
    if not webdriver.lacks():
        yield from in_browser(pages, index, steps)


def check_keyboard(pages):
    tensors = {f"layers.{i}.{part}": floats(*range(1 + i)) for i in range(12)
               for part in ("weight", "bias")}
    file = safetensors(pages.folder / "keys.safetensors", tensors)

    def steps(browser):
        browser.run(FOCUS, "#tensor-table .grid")
        browser.press("Down", "Down")
        yield from differs("tensor after two steps", browser.run(SELECTED), "layers.0.bias")
        browser.press("End")
        yield from differs("the last tensor", browser.run(SELECTED), "layers.11.bias")
        browser.run(FOCUS, "#tensor-table th:nth-child(4) button")
        browser.press("Enter", "Enter")
        yield from differs("the largest tensor", browser.run(NAMES)[0], "layers.11.weight")
        browser.run(FOCUS, "#tensor-table input")
        browser.press(*"layers.10 bias")
        yield from differs("names found", browser.run(NAMES), ["layers.10.bias"])
        browser.run(FOCUS, "#map g[tabindex]")
        browser.press("Enter")
        yield from differs("path of modules", browser.run(TEXT, "path"), "alllayers0")
        browser.run(FOCUS, "#path button")
        browser.press("Enter")
        yield from differs("path at the top", browser.run(TEXT, "path"), "alllayers")
    yield from in_browser(pages, file, steps)


def check_overview(pages):
    """Facts, the health line, the map and the roles by layer, of the figures of all values."""
    tensors = {f"blk.{i}.{part}.weight": floats(*(v * (i + 1) for v in (1, -1, 1, -1)))
               for i in range(3) for part in ("attn_q", "ffn_up")}
    tensors["blk.1.ffn_up.weight"] = floats(1, 2, NAN)
    file = safetensors(pages.folder / "roles.safetensors", tensors, {"license": "MIT"})

    def steps(browser):
        text = browser.run(TEXT, "summary")
        for part in ("3 in blk", "MIT", "1 NaN in 1 tensor: all 23 values were read",
                     "Context" + "not stated"):
            if part not in text:
                yield f"the overview lacks {part!r}: {text[:500]!r}"
        label = "return document.querySelector(`[data-at='${arguments[0]}']`)" \
                ".getAttribute('aria-label')"
        yield from differs("a cell", browser.run(label, "0,2"), "q, layer 2: 3")
        yield from differs("pieces of the map", browser.run(
            "return [...document.querySelectorAll('#map g[tabindex]')]"
            ".map(g => g.textContent.split(':')[0])"), ["0", "2", "1"])
        browser.run(FOCUS, "[data-at='0,0']")
        browser.press("Enter")
        yield from differs("the tensor of a cell", browser.run(SELECTED), "blk.0.attn_q.weight")
    yield from in_browser(pages, file, steps)


def check_many_rows(pages):
    count = 100_000
    one = floats(1.0, 2.0)
    file = safetensors(pages.folder / "many.safetensors",
                       {f"layers.{i // 10}.w{i % 10}": one for i in range(count)})

    def steps(browser):
        view = "document.querySelector('#tensor-table .grid')"
        yield from differs("rows said", browser.run(
            "return document.querySelector('#tensor-table [role=status]').textContent"),
            "100,000 rows")
        browser.run(FOCUS, "#tensor-table .grid")
        browser.press("End")
        yield from differs("the last row", browser.run(NAMES)[-1], "layers.9999.w9")
        browser.run(f"{view}.scrollTop = {view}.scrollHeight / 2")
        shown = browser.run("return new Promise(r => requestAnimationFrame(() => "
                            "requestAnimationFrame(r))).then(() => " +
                            NAMES.replace("return ", "", 1) + ")")
        middle = [int(re.search(r"layers\.(\d+)", n).group(1)) for n in shown]
        if not middle or not 4900 < middle[0] < 5100 or len(middle) > 60:
            yield f"{len(middle)} rows in the middle, from {shown[:1]}"
    yield from in_browser(pages, file, steps)


def check_compared_page(pages):
    def steps(browser):
        yield from differs("summary", browser.run(TEXT, "comparison-text"),
                           "6 tensors: 1 equal, 2 differ, 1 renamed, 1 only in A, 1 only in B.")
        yield from differs("rows", browser.run(
            "return document.querySelectorAll('#comparison-table tr[data-row]').length"), 5)
        yield from differs("hidden", browser.run(
            "return document.getElementById('comparison').hidden"), False)
    yield from in_browser(pages, pages.folder / "a.safetensors", steps,
                          pages.folder / "b.safetensors")


PANES = """const box = (s) => document.querySelector(s).getBoundingClientRect();
const [list, pair] = [box(".compare-left"), box(".pair")];
return { isBeside: pair.left >= list.right, isBelow: pair.top >= list.bottom,
         isCut: document.documentElement.scrollWidth > innerWidth }"""
PAIR = """return { name: document.querySelector(".pair h3").textContent,
  titles: [...document.querySelectorAll(".pair-maps h4")].map(h => h.textContent),
  ends: [...document.querySelectorAll(".pair-maps canvas")]
    .map(c => /from (\\S+)/.exec(c.getAttribute("aria-label"))[1]),
  bins: document.querySelectorAll(".both-bins").length }"""


def check_panes(pages):
    """The table is on the left, the tensor that differs most on the right: below in narrow
    windows; the arrow keys choose others."""
    wide = {"width": 1280}
    for how in (wide, {"width": 520}):
        def steps(browser, how=how):
            panes = browser.run(PANES)
            yield from differs(f"panes of {how}", panes, {
                "isBeside": how is wide, "isBelow": how is not wide, "isCut": False})
            shown = browser.run(PAIR)
            yield from differs("the first tensor", (shown["name"], shown["titles"], shown["bins"]),
                               ("c", ["A", "B", "A \u2212 B"], 1))
            yield from differs("scales", len(set(shown["ends"])), 1)
            browser.run("document.querySelector('.pair input[type=checkbox]').click()")
            yield from differs("own scale", len(set(browser.run(PAIR)["ends"])), 2)
            browser.run(FOCUS, "#comparison-table .grid")
            browser.press("Down")
            yield from differs("a tensor of A", browser.run(PAIR)["name"], "gone")
            yield from differs("its maps", browser.run(PAIR)["titles"], ["A"])
            chips = "return [...document.querySelectorAll('.chips button')].map(b => b.textContent)"
            yield from differs("kinds", browser.run(chips)[:2] + browser.run(chips)[-1:],
                               ["All 75", "Values 2", "By module"])
        yield from in_browser(pages, pages.folder / "one.safetensors", steps,
                              pages.folder / "two.safetensors", **how)


# Characters at which lines of an element's text end, but for the last line.
ENDS = """const found = [];
for (const node of document.querySelectorAll(arguments[0])) {
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  let top = null, last = "";
  for (let t = walk.nextNode(); t; t = walk.nextNode())
    for (let i = 0; i < t.length; i++) {
      const r = document.createRange();
      r.setStart(t, i);
      r.setEnd(t, i + 1);
      const box = r.getClientRects()[0];
      if (!box || t.data[i] === " ") continue;
      if (top !== null && box.top > top + 3 && t.data[i - 1] !== " ") found.push(last);
      top = box.top;
      last = t.data[i];
    }
}
return found"""


def check_names_break(pages):
    """Lines end between the words of names."""
    name = "model.embed_tokens.a_rather_long_name_of_a_module.with_many_words.weight"
    file = safetensors(pages.folder / "breaks.safetensors", {
        name: ("F32", [3, 4], bytes(48)), "model.layers.0.self_attn.q_proj.weight": floats(1.0)})

    def steps(browser):
        ends = browser.run(ENDS, ".about .from")
        if not ends or set(ends) - set("._"):
            yield f"lines end after {ends}"
    for width in (1280, 520):
        yield from in_browser(pages, file, steps, width=width)


def check_colours(pages):
    def colours(browser):
        return browser.run("const s = getComputedStyle(document.body);"
                           "return [s.color, s.backgroundColor].map(c => "
                           "c.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))")

    for dark in (False, True):
        def steps(browser, dark=dark):
            text, page = colours(browser)
            if (text > page) != dark or abs(text - page) < 400:
                yield f"dark={dark}: sums of colours are {text} on {page}"
            wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
            if wide > 0:
                yield f"dark={dark}: the page is {wide} pixels wider than the window"
        yield from in_browser(pages, pages.folder / "figures.safetensors", steps, dark=dark,
                              width=520)


def check_digests(pages):
    """The digests of the policy are those of the style and the script in the page."""
    text = pages.write(pages.folder / "figures.safetensors").read_text(encoding="utf-8")
    for kind in ("style", "script"):
        content = re.search(f"<{kind}>(.*?)</{kind}>", text, re.S).group(1).encode()
        want = base64.b64encode(hashlib.sha256(content).digest()).decode()
        if f"{kind}-src 'sha256-{want}'" not in text:
            yield f"the digest of the {kind} is not {want}"


def main(heft):
    plain = {"figures": check_figures, "metadata": check_nested_metadata,
             "much metadata": check_much_metadata, "findings": check_findings,
             "many tensors": check_many_tensors,
             "comparison": check_comparison, "pictures of a comparison": check_pictures,
             "the output": check_output,
             "nothing is loaded": check_nothing_is_loaded, "digests of the policy": check_digests,
             "names are text": check_names_are_text, "a set with a missing shard": check_incomplete}
    browsed = {"hostile names in a browser": check_hostile_page, "keyboard": check_keyboard,
               "overview": check_overview,
               "numbers are whole": check_numbers, "100,000 rows": check_many_rows,
               "a comparison in a browser": check_compared_page,
               "panes of a comparison": check_panes, "lines of names": check_names_break,
               "colours and a narrow window": check_colours}
    with tempfile.TemporaryDirectory() as folder:
        pages = Pages(pathlib.Path(heft).resolve(), pathlib.Path(folder).resolve())
        results = [(title, list(fn(pages))) for title, fn in plain.items()]
        why = webdriver.lacks()
        if os.environ.get("HEFT_TEST_FEWER"):
            why = "the page is the same in every build"
        for title, fn in browsed.items():
            results.append((f"{title} # SKIP {why}", []) if why else (title, list(fn(pages))))
        return tap.report(results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
