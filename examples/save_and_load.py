"""save_and_load.py - write tensors from Python, read and check them, without other packages."""
import array
import sys

import heft


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "small.safetensors"
    weights = {"weight": memoryview(array.array("f", range(6))).cast("B").cast("f", (2, 3)),
               "bias": array.array("f", [0.5, -0.5])}
    heft.save(weights, path)

    with heft.open(path) as file:
        for name, tensor in file.items():
            print(name, tensor.dtype, tensor.shape, memoryview(tensor).tolist())

    loaded = heft.load(path, framework=None)
    assert bytes(loaded["bias"]) == weights["bias"].tobytes()
    assert heft.verify(path)


if __name__ == "__main__":
    main()
