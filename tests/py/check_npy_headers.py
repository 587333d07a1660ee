#!/usr/bin/env python3
"""check_npy_headers.py HEFT COMMANDS: headers of arrays as Python allows them, judged by NumPy.

An array that NumPy opens has the values that NumPy reads, and one that it refuses is refused. TAP
on stdout; skipped without NumPy."""
import io
import json
import pathlib
import random
import sys
import tempfile
import warnings

from commands import Commands

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP NumPy is not here")
    sys.exit(0)

COUNT = 3000  # headers
BATCH = 250  # files of one command
DATA = bytes(range(1, 97))  # the elements
TYPES = """<f4 >f4 =f4 |f4 f4 f2 f8 >f8 i1 |i1 <i1 u1 i2 >i2 u2 i4 u4 i8 u8 >u8 c8 >c8 c16 ? |? <?
    b1 |b1 b B h H i I l L q Q p P e f d F D <i >d =q bool bool_ int8 uint8 byte ubyte int16
    uint16 short ushort int32 uint32 intc uintc int64 uint64 int uint int_ intp uintp long
    longlong ulonglong float16 float32 float64 half single double float complex complex64 complex128
    csingle cdouble
    """.split()
BAD_TYPES = ["<float32", "f3", "x4", "<", "<<f4", "f16", "g", "S4", "U1", "O", "M8[s]", "bf16",
             "F32", "float8", "fp16", "f4 ", " f4", "|O", "half ", "nchar", "@f4"]
SHAPES = ["()", "(3,)", "(2, 3)", "(1, 2, 3)", "(0,)", "(4, 0)", "(1,)", "(6)", "6", "[2, 3]",
          "(2 3)", "(,)", "(2,,3)", "(2.0,)", "('2',)", "(2, 3", "(99999,)", "(2, -3)", "((2,), 3)"]
KEYS = ["descr", "fortran_order", "shape"]
BLANKS = ["", "", "", " ", "  ", "\t", "\n", "\r\n", "\n\n", " # a comment\n", "#'\n", "\f",
          "\\\n", "\n  "]
ESCAPES = {"x": lambda c: f"\\x{ord(c):02x}", "octal": lambda c: f"\\{ord(c):03o}",
           "u": lambda c: f"\\u{ord(c):04X}", "U": lambda c: f"\\U{ord(c):08x}"}


class Writer:
    """Writes one header, with a share of unusual spellings."""

    def __init__(self, rng, unusual):
        self.rng, self.unusual = rng, unusual

    def rarely(self, share=1.0):
        return self.rng.random() < self.unusual * share

    def blank(self):
        return self.rng.choice(BLANKS) if self.rarely() else ""

    def around(self, text):
        """Put the text in parentheses."""
        while self.rarely(0.5):
            text = f"({self.blank()}{text}{self.blank()})"
        return text

    def one_string(self, text):
        quote = self.rng.choice(["'", '"', "'''", '"""']) if self.rarely() else "'"
        prefix = self.rng.choice(["u", "U", "r", "R", "b", "f", "ur", "u "]) if self.rarely(
            0.3) else ""
        if self.rarely(0.3):
            how = ESCAPES[self.rng.choice(list(ESCAPES))]
            text = "".join(how(c) if self.rng.random() < 0.3 else c for c in text)
        if self.rarely(0.1):
            text += self.rng.choice(["\\\n", "\\q", "\\x4", "\\u12", "\n", "\\'", "\\"])
        return prefix + quote + text + quote

    def string(self, text):
        pieces = [text]
        while self.rarely(0.5):
            at = self.rng.randrange(len(text) + 1)
            pieces = [text[:at], text[at:]]
            break
        return self.around(self.blank().join(self.one_string(p) for p in pieces))

    def number(self, text):
        if not text.isdigit() or not self.rarely():
            return text
        n = int(text)
        spelled = self.rng.choice([f"0x{n:x}", f"0X{n:X}", f"0o{n:o}", f"0b{n:b}", f"0b_{n:b}",
                                   f"{n}L", f"{n} L", f"+{n}", f"+ ({n})", f"0{n}", f"{n}_",
                                   f"_{n}",
                                   f"0x{n:04x}", f"0b{n:06_b}", f"{n}l", f"{n}LL", f"{n}.",
                                   f"--{n}",
                                   f"-{n}", f"{n}e0", f"{n}j", f"0x{n:x}L", "00", "0_0", "1_0"])
        return self.around(spelled)

    def shape(self):
        text = self.rng.choice(SHAPES[:6] if self.rng.random() < 0.8 else SHAPES)
        out, digits = "", ""
        for c in text + "\0":
            if c.isdigit():
                digits += c
                continue
            out += self.number(digits) if digits else ""
            digits = ""
            out += self.blank() + c.rstrip("\0") + (self.blank() if c != "." else "")
        if self.rarely() and out.rstrip().endswith(")") and "," in out:
            out = out.rstrip()[:-1] + self.rng.choice([",", ", ", ",,"]) + ")"
        return self.around(out.strip(" ") or "()")

    def order(self):
        text = self.rng.choice(["True", "False"])
        if self.rarely(0.2):
            text = self.rng.choice(["true", "0", "1", "None", "Truefalse", "False_", "not True"])
        return self.around(text)

    def dictionary(self):
        keys = list(KEYS)
        if self.rng.random() < 0.5:
            self.rng.shuffle(keys)
        if self.rarely(0.1):
            keys = self.rng.choice([keys[:2], keys + ["more"]])
        types = BAD_TYPES if self.rng.random() < 0.1 else TYPES
        values = {"descr": lambda: self.string(self.rng.choice(types)), "shape": self.shape,
                  "fortran_order": self.order, "more": lambda: "1"}
        b = self.blank
        fields = [f"{b()}{self.string(k)}{b()}:{b()}{values[k]()}{b()}" for k in keys]
        comma = self.rng.choice(["", ",", ", ", ",,"]) if self.rarely() else ","
        return "{" + ",".join(fields) + comma + b() + "}"

    def header(self):
        text = self.around(self.dictionary())
        before = self.rng.choice(["\n", " ", "  ", "# a comment\n", "\n ", " \n"]) if self.rarely(
            0.3) else ""
        after = self.rng.choice(["\n", "", "   \n", "# the end", "\n# end\n", " x", ",", ";", "\0",
                                 "\n\n", "{}"]) if self.rarely(0.5) else "  \n"
        return before + text + after


def file_of(rng, text):
    version = rng.choice([1, 1, 2, 3])
    data = text.encode()
    length = len(data).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + data + DATA


def judge(data):
    """Return the array that NumPy reads, or None."""
    try:
        a = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:  # NumPy, tokenize and ast raise many types of errors
        return None
    is_number = isinstance(a, np.ndarray) and a.dtype.kind in "biufc" and a.dtype.char not in "gG"
    return a if is_number else None


def digests(paths):
    p = COMMANDS.run("hash", "--json", *map(str, paths), text=False)
    answer = json.loads(p.stdout)
    answers = answer if isinstance(answer, list) else [answer]
    return {a["file"]: a.get("model") for a in answers}


def check(root, seed, unusual):
    rng = random.Random(seed)
    texts = [Writer(rng, unusual).header() for _ in range(COUNT // 4)]
    files, wanted = {}, {}
    for i, text in enumerate(texts):
        path, plain = root / f"{seed}_{i}.npy", root / f"{seed}_{i}_plain.npy"
        path.write_bytes(file_of(rng, text))
        a = judge(path.read_bytes())
        files[path], wanted[path] = text, plain if a is not None else None
        if a is not None:
            np.save(plain, np.ascontiguousarray(a).reshape(a.shape).astype(
                a.dtype.newbyteorder("<")))
    found, paths = {}, list(files) + [p for p in wanted.values() if p]
    for i in range(0, len(paths), BATCH):
        found.update(digests(paths[i:i + BATCH]))
    opened = sum(1 for p in wanted.values() if p)
    print(f"# NumPy opens {opened} of {len(files)}")
    if not len(files) // 10 < opened < len(files):
        yield f"NumPy opens {opened} of {len(files)} arrays"
    for path, text in files.items():
        want = found.get(str(wanted[path])) if wanted[path] else None
        if found.get(str(path)) != want:
            yield f"{'opens' if wanted[path] else 'refuses'} in NumPy: {path.read_bytes()[6:-96]!r}"


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        return tap.report((f"{unusual:.0%} unusual headers", list(check(root, seed, unusual)))
                          for seed, unusual in enumerate((0.03, 0.08, 0.15, 0.25)))


HEFT, COMMANDS = sys.argv[1], Commands(sys.argv[2])
sys.exit(main())
