#!/usr/bin/env python3
"""The keyed hash of names in plain Python, the reference for src/base/name_hash.h.

Prints the rows of tests/name_hash_vectors.h: secret 00 01 .. 0f, messages 00 01 .. of each length
from 0 to 140."""
from siphash_ref import siphash

MIN_LENGTH, MAX_LENGTH = 8, 128
SECRET = bytes(range(16))


def sip(data):
    return siphash(1, 3, SECRET, data)


def keyed(data):
    if not MIN_LENGTH <= len(data) <= MAX_LENGTH:
        return sip(data) % 2**32
    times = [sip(i.to_bytes(4, "little")) for i in range(1 + MAX_LENGTH // 4)]
    whole = (len(data) -
             1) // 8 * 8  # bytes before the last word; the last word ends with the data
    padded = data[:whole] + data[-8:]
    numbers = [
        len(data), *(int.from_bytes(padded[i:i + 4], "little") for i in range(0, len(padded), 4))
    ]
    high = sum(a * b for a, b in zip(times, numbers)) % 2**64 >> 32
    mixed = (high ^ high >> 16) * 0x9E3779B1 % 2**32
    return mixed ^ mixed >> 15


def main():
    print("/* name_hash_vectors.h - written by tests/py/keyed_ref.py. */")
    for length in range(141):
        print("0x%08x," % keyed(bytes(range(length))))


if __name__ == "__main__":
    main()
