"""xxh3.py - XXH3 (64 bits, seed 0) after the specification, for sample files."""
import struct

MASK = 2**64 - 1
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PMX_1, PMX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db"
    "7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb"
    "88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931"
    "c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
STRIPE, LANES, SHORT, MEDIUM = 64, 8, 128, 240


def u32(b, at):
    return struct.unpack_from("<I", b, at)[0]


def u64(b, at):
    return struct.unpack_from("<Q", b, at)[0]


def fold(a, b):
    p = a * b
    return (p ^ p >> 64) & MASK


def avalanche(h):
    h = (h ^ h >> 37) * PMX_1 & MASK
    return h ^ h >> 32


def avalanche64(h):
    h = (h ^ h >> 33) * P64_2 & MASK
    h = (h ^ h >> 29) * P64_3 & MASK
    return h ^ h >> 32


def swap64(v):
    return int.from_bytes(v.to_bytes(8, "little"), "big")


def tiny(b):
    n = len(b)
    if n == 0:
        return avalanche64(u64(SECRET, 56) ^ u64(SECRET, 64))
    if n <= 3:
        v = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        return avalanche64(v ^ u32(SECRET, 0) ^ u32(SECRET, 4))
    if n <= 8:
        v = u32(b, n - 4) + (u32(b, 0) << 32) ^ u64(SECRET, 8) ^ u64(SECRET, 16)
        v ^= (v << 49 | v >> 15) & MASK ^ (v << 24 | v >> 40) & MASK
        v = v * PMX_2 & MASK
        v ^= (v >> 35) + n
        v = v * PMX_2 & MASK
        return v ^ v >> 28
    low = u64(b, 0) ^ u64(SECRET, 24) ^ u64(SECRET, 32)
    high = u64(b, n - 8) ^ u64(SECRET, 40) ^ u64(SECRET, 48)
    return avalanche((n + swap64(low) + high + fold(low, high)) & MASK)


def mix16(b, at, secret):
    return fold(u64(b, at) ^ u64(SECRET, secret), u64(b, at + 8) ^ u64(SECRET, secret + 8))


def short(b):
    n, acc = len(b), len(b) * P64_1
    for i in reversed(range((n - 1) // 32 + 1)):
        acc += mix16(b, 16 * i, 32 * i) + mix16(b, n - 16 * (i + 1), 32 * i + 16)
    return avalanche(acc & MASK)


def medium(b):
    n, acc = len(b), len(b) * P64_1
    for i in range(8):
        acc += mix16(b, 16 * i, 16 * i)
    acc = avalanche(acc & MASK)
    for i in range(8, n // 16):
        acc += mix16(b, 16 * i, 16 * (i - 8) + 3)
    acc += mix16(b, n - 16, 136 - 17)
    return avalanche(acc & MASK)


def accumulate(acc, b, at, secret):
    for i in range(LANES):
        v = u64(b, at + 8 * i)
        keyed = v ^ u64(SECRET, secret + 8 * i)
        acc[i ^ 1] = (acc[i ^ 1] + v) & MASK
        acc[i] = (acc[i] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & MASK


def scramble(acc):
    for i in range(LANES):
        v = acc[i] ^ acc[i] >> 47 ^ u64(SECRET, len(SECRET) - STRIPE + 8 * i)
        acc[i] = v * P32_1 & MASK


def long(b):
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    n, stripes = len(b), (len(SECRET) - STRIPE) // 8
    block = STRIPE * stripes
    blocks = (n - 1) // block
    for k in range(blocks):
        for s in range(stripes):
            accumulate(acc, b, k * block + s * STRIPE, 8 * s)
        scramble(acc)
    for s in range((n - 1 - blocks * block) // STRIPE):
        accumulate(acc, b, blocks * block + s * STRIPE, 8 * s)
    accumulate(acc, b, n - STRIPE, len(SECRET) - STRIPE - 7)
    result = n * P64_1
    for i in range(4):
        result += fold(acc[2 * i] ^ u64(SECRET, 11 + 16 * i),
                       acc[2 * i + 1] ^ u64(SECRET, 19 + 16 * i))
    return avalanche(result & MASK)


def xxh3(b):
    n = len(b)
    return tiny(b) if n <= 16 else short(b) if n <= SHORT else medium(b) if n <= MEDIUM else long(b)


# Hashes of the reference implementation for the bytes 0, 1, 2, … of each length.
KNOWN = {
    0: 0x2D06800538D394C2, 2: 0xD6645FC3051A9457, 7: 0x0CD2084A62406B69, 13: 0xB7A5D8A8309A2CB9,
    100: 0x004E4F921A64BD1C, 200: 0xF42A8864FEAF0703, 3000: 0x1B846747012C24AA
}
for length, known in KNOWN.items():
    if xxh3(bytes(i % 251 for i in range(length))) != known:
        raise AssertionError(f"XXH3 of {length} bytes is wrong")
