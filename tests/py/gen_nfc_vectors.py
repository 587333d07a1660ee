#!/usr/bin/env python3
"""gen_nfc_vectors.py: write texts with Python's NFC verdict to stdout, for tests/test_nfc.c.

A record is a verdict byte, u16 length and UTF-8. Verdicts: 'y' is in form C; 'n' is not, and the
table must detect that; '?' is not, and the table may miss that."""
import random
import struct
import sys
import unicodedata

BMP = [c for c in range(0x10000) if not 0xD800 <= c < 0xE000]  # the BMP gets no new pairs
MARKS = [c for c in BMP if unicodedata.combining(chr(c))]
LETTERS = [
    c for c in BMP
    if unicodedata.decomposition(chr(c)) and not unicodedata.decomposition(chr(c)).startswith("<")
]
JAMO = [
    *range(0x10FF, 0x1114), *range(0x1160, 0x1177), *range(0x11A6, 0x11C4), 0xAC00, 0xAC01, 0xAC1C,
    0xD788, 0xD7A3, 0xD7A4
]
PLAIN = [*b"aeiouxAZ.0_", 0x65E5, 0x0416, 0x1F600, 0x10FFFF]


def put(text, verdict):
    raw = text.encode()
    sys.stdout.buffer.write(verdict.encode() + struct.pack("<H", len(raw)) + raw)


def judge(text, doubt):
    put(text, "y" if unicodedata.is_normalized("NFC", text) else doubt)


def main():
    rng = random.Random(7)
    put("", "y")
    for c in BMP:
        judge(chr(c), "n")
        judge("a" + chr(c), "n")
    for c in LETTERS:  # decomposed like names of some file systems
        judge("name." + unicodedata.normalize("NFD", chr(c)) + ".weight", "n")
        judge(unicodedata.normalize("NFC", chr(c)) * 2, "n")
    for c in range(0xAC00, 0xD7A4, 7):
        judge(unicodedata.normalize("NFD", chr(c)), "n")
        judge(chr(c) * 2, "n")
    for first in JAMO:
        for second in JAMO:
            judge(chr(first) + chr(second), "n")
    for a in rng.sample(MARKS, 150):
        for b in rng.sample(MARKS, 20):
            judge("x" + chr(a) + chr(b), "n")
    pool = [*MARKS, *LETTERS, *JAMO, *PLAIN * 20]
    for _ in range(20000):
        text = "".join(chr(rng.choice(pool)) for _ in range(rng.randrange(1, 9)))
        judge(text, "?")
        judge(unicodedata.normalize("NFC", text), "?")
    judge("\u1e61\u0323", "?")


main()
