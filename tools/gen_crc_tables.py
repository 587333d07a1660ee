#!/usr/bin/env python3
"""gen_crc_tables.py: write src/base/crc_tables.h to stdout.

Table 0 has the CRC of one byte, table k the CRC of the byte followed by k zero bytes, for the
bit-reversed polynomials; the tables of halves have the CRC of half a byte. CRCs are linear: an
entry is the XOR of the entries of its bits, so that eight numbers state a table and the compiler
computes the others. tests/test_crc.c compares the tables with a division bit by bit."""

POLYNOMIALS = [("ieee", 0xEDB88320), ("castagnoli", 0x82F63B78)]
SLICES = 8

HEAD = """\
/* crc_tables.h - written by tools/gen_crc_tables.py; included by crc.c only. */
#ifndef HEFT_CRC_TABLES_H
#define HEFT_CRC_TABLES_H
#include <stdint.h>

enum { CRC_SLICES = %d };

/* clang-format off */

/* Entries of a table, given the entries of the bits of a byte, bit 0 first. */
#define CRC_1(i, a, b, c, d, e, f, g, h) \\
    (((i) & 1 ? (a) : 0) ^ ((i) & 2 ? (b) : 0) ^ ((i) & 4 ? (c) : 0) ^ \\
     ((i) & 8 ? (d) : 0) ^ ((i) & 16 ? (e) : 0) ^ ((i) & 32 ? (f) : 0) ^ \\
     ((i) & 64 ? (g) : 0) ^ ((i) & 128 ? (h) : 0))
#define CRC_4(i, ...)  CRC_1(i, __VA_ARGS__), CRC_1((i) + 1, __VA_ARGS__), \\
                       CRC_1((i) + 2, __VA_ARGS__), CRC_1((i) + 3, __VA_ARGS__)
#define CRC_16(i, ...) CRC_4(i, __VA_ARGS__), CRC_4((i) + 4, __VA_ARGS__), \\
                       CRC_4((i) + 8, __VA_ARGS__), CRC_4((i) + 12, __VA_ARGS__)
#define CRC_64(i, ...) CRC_16(i, __VA_ARGS__), CRC_16((i) + 16, __VA_ARGS__), \\
                       CRC_16((i) + 32, __VA_ARGS__), CRC_16((i) + 48, __VA_ARGS__)
#define CRC_TABLE(...) { CRC_64(0, __VA_ARGS__), CRC_64(64, __VA_ARGS__), \\
                         CRC_64(128, __VA_ARGS__), CRC_64(192, __VA_ARGS__) }

"""
TAIL = """\
/* clang-format on */

#endif
"""


def tables(polynomial):
    first = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
        first.append(crc)
    result = [first]
    for _ in range(SLICES - 1):
        result.append([crc >> 8 ^ first[crc & 0xFF] for crc in result[-1]])
    return result


def main():
    print(HEAD % SLICES, end="")
    for name, polynomial in POLYNOMIALS:
        halves = ["0x%08x," % crc for crc in tables(polynomial)[0][::16]]
        print("static const uint32_t %s_halves[16] = {" % name)
        print("\n".join("    " + " ".join(halves[i:i + 8]) for i in (0, 8)) + "\n};")
        print("static const uint32_t %s_tables[CRC_SLICES][256] = {" % name)
        for table in tables(polynomial):
            bits = ["0x%08x" % table[1 << bit] for bit in range(8)]
            print("    CRC_TABLE(" + ", ".join(bits[:4]) + ",")
            print("              " + ", ".join(bits[4:]) + "),")
        print("};")
    print(TAIL, end="")


if __name__ == "__main__":
    main()
