"""cbor.py - CBOR (RFC 8949) for the writers and readers of samples, including malformed items."""
import struct

BREAK = b"\xff"


class Raw(bytes):
    """An encoded item, possibly malformed."""


class Pairs(list):
    """A map as a list of pairs in the given order; keys may repeat."""


class Open(list):
    """A map of indefinite length, as a list of pairs."""


def head(major, n):
    if n < 24:
        return bytes([major << 5 | n])
    for info, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 1 << 8 * size:
            return bytes([major << 5 | info]) + n.to_bytes(size, "big")
    raise ValueError(n)


def encode_float(v):
    if v != v:
        return b"\xf9\x7e\x00"
    for info, layout in ((0xF9, ">e"), (0xFA, ">f"), (0xFB, ">d")):
        try:
            raw = struct.pack(layout, v)
        except OverflowError:
            continue
        if struct.unpack(layout, raw)[0] == v:
            return bytes([info]) + raw
    raise ValueError(v)


def encode(v, is_sorted=False):
    """Encode `v` in shortest forms of definite length; `is_sorted` sorts maps by encoded key
    (§4.2.1)."""
    if isinstance(v, Raw):
        return bytes(v)
    if v is None or isinstance(v, bool):
        return {None: b"\xf6", False: b"\xf4", True: b"\xf5"}[v]
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, float):
        return encode_float(v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        raw = v.encode()
        return head(3, len(raw)) + raw
    pairs = v.items() if isinstance(v, dict) else v if isinstance(v, (Pairs, Open)) else None
    if pairs is None:
        return head(4, len(v)) + b"".join(encode(x, is_sorted) for x in v)
    made = [(encode(k, is_sorted), encode(x, is_sorted)) for k, x in pairs]
    body = b"".join(k + x for k, x in (sorted(made) if is_sorted else made))
    return b"\xbf" + body + BREAK if isinstance(v, Open) else head(5, len(made)) + body


def take(b, at, n):
    if at + n > len(b):
        raise ValueError("the document is cut short")
    return b[at:at + n], at + n


def decode(b, at, levels):
    """Return the item at `at` and its end. Only definite lengths, no tags, unique text keys."""
    first, at = take(b, at, 1)
    major, info, raw = first[0] >> 5, first[0] & 31, b""
    if major == 6 or info >= 28:
        raise ValueError(f"byte {first[0]:#x} at {at - 1}")
    if info >= 24:
        raw, at = take(b, at, 1 << info - 24)
    n = int.from_bytes(raw, "big") if raw else info
    if major in (0, 1):
        return (n if major == 0 else -1 - n), at
    if major in (2, 3):
        raw, at = take(b, at, n)
        return (raw if major == 2 else raw.decode()), at
    if major == 7:
        if info in (20, 21, 22):
            return {20: False, 21: True, 22: None}[info], at
        return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[info], raw)[0], at
    if not levels:
        raise ValueError("too many levels")
    if major == 4:
        items = []
        for _ in range(n):
            v, at = decode(b, at, levels - 1)
            items.append(v)
        return items, at
    pairs = {}
    for _ in range(n):
        k, at = decode(b, at, levels - 1)
        if not isinstance(k, str) or k in pairs:
            raise ValueError(f"key {k!r}")
        pairs[k], at = decode(b, at, levels - 1)
    return pairs, at
