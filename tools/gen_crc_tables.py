#!/usr/bin/env python3
"""gen_crc_tables.py: write src/base/crc_tables.h to stdout.

Table 0 has the CRC of one byte, table k the CRC of the byte followed by k zero bytes, for the
bit-reversed polynomials; the tables of halves have the CRC of half a byte. tests/test_crc.c
compares the tables with a division bit by bit."""

POLYNOMIALS = [("ieee", 0xEDB88320), ("castagnoli", 0x82F63B78)]
SLICES = 8

HEAD = """\
/* crc_tables.h - written by tools/gen_crc_tables.py; included by crc.c only. */
#ifndef HEFT_CRC_TABLES_H
#define HEFT_CRC_TABLES_H
#include <stdint.h>

enum { CRC_SLICES = %d };

/* clang-format off */
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
            print("    {")
            for i in range(0, 256, 8):
                print("    " + " ".join("0x%08x," % crc for crc in table[i : i + 8]))
            print("    },")
        print("};")
    print(TAIL, end="")


if __name__ == "__main__":
    main()
