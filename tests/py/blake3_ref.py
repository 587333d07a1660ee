#!/usr/bin/env python3
"""blake3_ref.py N... | --table: BLAKE3 in plain Python, the reference for src/base/blake3.c.

The code is recursive, as the paper defines the hash. N... prints the hash of the test pattern (byte
i is i % 251) of each length; --table prints the rows of tests/blake3_vectors.h."""
import struct
import sys

IV = [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
      0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19]
PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
LENGTHS = [0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 3073,
           4095, 4096, 4097, 5120, 5121, 6144, 6145, 7168, 7169, 8192, 8193, 9217, 16384, 31744,
           65535, 65536, 65537, 102400]


def compress(cv, block, counter, length, flags):
    def mix(a, b, c, d, x, y):
        def rotate(v, n):
            return (v >> n | v << (32 - n)) & 0xFFFFFFFF
        v[a] = (v[a] + v[b] + x) & 0xFFFFFFFF
        v[d] = rotate(v[d] ^ v[a], 16)
        v[c] = (v[c] + v[d]) & 0xFFFFFFFF
        v[b] = rotate(v[b] ^ v[c], 12)
        v[a] = (v[a] + v[b] + y) & 0xFFFFFFFF
        v[d] = rotate(v[d] ^ v[a], 8)
        v[c] = (v[c] + v[d]) & 0xFFFFFFFF
        v[b] = rotate(v[b] ^ v[c], 7)

    m = list(struct.unpack("<16I", block.ljust(64, b"\0")))
    v = cv + IV[:4] + [counter & 0xFFFFFFFF, counter >> 32, length, flags]
    for _ in range(7):
        mix(0, 4, 8, 12, m[0], m[1])
        mix(1, 5, 9, 13, m[2], m[3])
        mix(2, 6, 10, 14, m[4], m[5])
        mix(3, 7, 11, 15, m[6], m[7])
        mix(0, 5, 10, 15, m[8], m[9])
        mix(1, 6, 11, 12, m[10], m[11])
        mix(2, 7, 8, 13, m[12], m[13])
        mix(3, 4, 9, 14, m[14], m[15])
        m = [m[i] for i in PERMUTATION]
    return [v[i] ^ v[i + 8] for i in range(8)]


def chunk(data, counter, root):
    blocks = [data[i:i + 64] for i in range(0, len(data), 64)] or [b""]
    cv = IV
    for i, block in enumerate(blocks):
        flags = CHUNK_START if i == 0 else 0
        if i == len(blocks) - 1:
            flags |= CHUNK_END | root
        cv = compress(cv, block, counter, len(block), flags)
    return cv


def subtree(data, counter, root):
    """Hash chunks as a tree; the left subtree is the largest power of two of chunks that leaves a
    right subtree."""
    if len(data) <= 1024:
        return chunk(data, counter, root)
    left = 1 << (len(data) - 1).bit_length() - 1
    halves = subtree(data[:left], counter, 0) + subtree(data[left:], counter + left // 1024, 0)
    return compress(IV, struct.pack("<16I", *halves), 0, 64, PARENT | root)


def blake3(data):
    return struct.pack("<8I", *subtree(data, 0, ROOT))


def pattern(length):
    return bytes(i % 251 for i in range(length))


def main():
    if sys.argv[1:] == ["--table"]:
        print("/* blake3_vectors.h - written by tests/py/blake3_ref.py --table. */")
        for length in LENGTHS:
            print('{ %d,\n  "%s" },' % (length, blake3(pattern(length)).hex()))
        return
    for length in map(int, sys.argv[1:]):
        print(length, blake3(pattern(length)).hex())


if __name__ == "__main__":
    main()
