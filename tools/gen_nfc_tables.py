#!/usr/bin/env python3
"""gen_nfc_tables.py: write src/base/nfc_tables.h to stdout.

The tables come from the Unicode data of Python: characters that never occur in normalization form
C, combining classes, and the pairs that form C composes, except Hangul syllables, which follow a
rule. tests/test_nfc.c compares the tables with Python."""
import unicodedata

WIDTH = 100
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)

HEAD = """\
/* nfc_tables.h - written by tools/gen_nfc_tables.py from Unicode %s; included by nfc.c only. */
#ifndef HEFT_NFC_TABLES_H
#define HEFT_NFC_TABLES_H
#include <stdint.h>

/* Consecutive characters with the same combining class. */
typedef struct nfc_run {
    uint32_t first;
    uint16_t count;
    uint8_t combining_class;
} nfc_run;

/* A character that is the second one of pairs that form C composes; the first characters of the
 * pairs are in bases[], from `begin` up to the `begin` of the next row. */
typedef struct nfc_mark {
    uint32_t mark;
    uint16_t begin;
} nfc_mark;

/* clang-format off */
"""
TAIL = """\
/* clang-format on */

#endif
"""


def characters():
    return (c for c in range(0x110000) if c not in SURROGATES)


def runs(of):
    """Return [first, count, value] of consecutive characters with equal nonzero values."""
    found = []
    for c in characters():
        value = of(chr(c))
        if value and found and found[-1][0] + found[-1][1] == c and found[-1][2] == value:
            found[-1][1] += 1
        elif value:
            found.append([c, 1, value])
    return found


def pairs():
    """Return {second character: first characters} of composed pairs."""
    found = {}
    for c in characters():
        parts = unicodedata.decomposition(chr(c)).split()
        if c in HANGUL or len(parts) != 2 or parts[0].startswith("<"):
            continue
        first, second = (int(p, 16) for p in parts)
        if unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(c):
            found.setdefault(second, []).append(first)
    return {mark: sorted(found[mark]) for mark in sorted(found)}


def put(kind, name, items):
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH:
            print(line)
            line = "   "
        line += f" {item},"
    print(line)
    print("};")


def main():
    by_mark, at, marks = pairs(), 0, []
    for mark, firsts in by_mark.items():
        marks.append(f"{{{mark:#x},{at}}}")
        at += len(firsts)
    print(HEAD % unicodedata.unidata_version, end="")
    put("nfc_run", "never", [
        f"{{{a:#x},{n},0}}" for a, n, _ in runs(lambda c: not unicodedata.is_normalized("NFC", c))
    ])
    put("nfc_run", "classes", [f"{{{a:#x},{n},{k}}}" for a, n, k in runs(unicodedata.combining)])
    put("nfc_mark", "marks", [*marks, f"{{0x110000,{at}}}"])
    put("uint32_t", "bases", [f"{first:#x}" for firsts in by_mark.values() for first in firsts])
    print(TAIL, end="")


if __name__ == "__main__":
    main()
