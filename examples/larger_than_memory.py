"""larger_than_memory.py: run a network whose weights do not fit the memory that it may use.

The weights are written here, 64 matrices of 1 MiB. The store keeps 8 MiB of them."""
import heft
import numpy as np

LAYERS, WIDTH, BUDGET = 64, 512, 8 << 20


def write_model(path):
    rng = np.random.default_rng(1)
    with heft.Writer(path, version="2") as out:
        out.begin()
        for i in range(LAYERS):
            w = rng.standard_normal((WIDTH, WIDTH), dtype=np.float32) / WIDTH**0.5
            out.append(f"layers.{i}.weight", w)


def run(store, x):
    names = [f"layers.{i}.weight" for i in range(LAYERS)]
    for i, name in enumerate(names):
        store.prefetch(names[i + 1:i + 3])  # while this layer computes
        with store.acquire(name) as weight:
            x = np.tanh(weight @ x)
    return x


def main():
    write_model("layers.zt")
    with heft.ParamStore(budget=BUDGET, copy=True) as store:
        store.add("layers.zt")
        x = run(store, np.ones(WIDTH, np.float32))
        stats = store.statistics()
    print(f"output {x[:3]}, {stats.loads} loads, {stats.evictions} evictions, "
          f"{stats.peak / 2**20:.1f} MiB at most")


if __name__ == "__main__":
    main()
