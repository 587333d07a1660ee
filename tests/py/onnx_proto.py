"""onnx_proto.py - writes the messages of ONNX, which is protocol buffers."""


def varint(n):
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def number(field, n):
    return varint(field << 3) + varint(n)


def content(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, kind, shape, data, **more):
    """Return a TensorProto; data: fields that have the elements."""
    dims = b"".join(number(1, d) for d in shape)
    return dims + number(2, kind) + content(8, name) + data + more.get("rest", b"")


def constant(name, kind, shape, raw):
    """Return an initializer of a graph."""
    return content(5, tensor(name, kind, shape, content(9, raw)))
