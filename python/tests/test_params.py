"""heft.ParamStore, judged by the arrays that were saved."""
import gc
import pathlib
import runpy
import threading

import heft
import pytest

np = pytest.importorskip("numpy")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(name="path")
def _path(tmp_path):
    heft.save({f"w{i}": np.full((100, 100), i, "f4") for i in range(10)}, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_parameters_stay_under_the_budget(path):
    with heft.ParamStore(budget=100_000, copy=True) as store:
        assert store.add(path) == 0
        assert store.names() == [f"w{i}" for i in range(10)]
        for turn in range(3):
            for i in range(10):
                with store.acquire(f"w{i}") as array:
                    assert array.shape == (100, 100) and (array == i).all()
                    assert not array.flags.writeable
                del array
        stats = store.statistics()
    assert stats.loads == 30 and stats.evictions >= 27 and stats.peak <= 100_000


def test_without_a_budget_everything_stays(path):
    store = heft.ParamStore()
    store.add(heft.open(path))
    for _ in range(2):
        for name in store.names():
            with store.acquire(name) as array:
                assert array[0, 0] == int(name[1:])
    stats = store.statistics()
    assert (stats.loads, stats.hits, stats.evictions) == (10, 10, 0)


def test_forms_of_f32(tmp_path):
    heft.save({"w": np.arange(6, dtype="f2").reshape(2, 3)}, tmp_path / "m.zt")
    store = heft.ParamStore(budget=1 << 20)
    store.add(tmp_path / "m.zt")
    with store.acquire("w") as half, store.acquire("w", dtype="f32") as single:
        assert (half.dtype, single.dtype) == ("float16", "float32")
        assert np.array_equal(half, single)
    with pytest.raises(ValueError):
        store.acquire("w", dtype="f64")


def test_views_outlive_their_store(path):
    store = heft.ParamStore(budget=1, copy=True)
    store.add(path)
    parameter = store.acquire("w7")
    array = parameter.numpy()
    parameter.release()
    with pytest.raises(heft.ArgumentError, match="released"):
        parameter.numpy()
    store.close()
    del store, parameter
    gc.collect()
    assert (array == 7).all()


def test_several_models(path, tmp_path):
    other = tmp_path / "other.gguf"
    heft.save({"w0": np.zeros(1, "f4"), "own": np.ones(2, "f4")}, other)
    store = heft.ParamStore()
    first, second = store.add(path), store.add(other)
    with pytest.raises(heft.ArgumentError, match="2 models"):
        store.acquire("w0")
    assert store.acquire("w0", model=first).shape == (100, 100)
    assert store.acquire("w0", model=second).shape == (1, )
    assert store.acquire("own").dtype == "f32"
    with pytest.raises(heft.NotFoundError):
        store.acquire("own", model=first)


def test_prefetch(path):
    store = heft.ParamStore(copy=True)
    store.add(path)
    store.prefetch(["w1", "w2"])
    with store.acquire("w1") as a, store.acquire("w2") as b:
        assert a[0, 0] == 1 and b[0, 0] == 2
    assert store.statistics().loads == 2


def test_many_threads(path):
    store, problems = heft.ParamStore(budget=90_000, copy=True), []
    store.add(path)

    def use(seed):
        try:
            for i in np.random.default_rng(seed).integers(0, 10, 200):
                with store.acquire(f"w{i}") as array:
                    assert (array == i).all()
        except Exception as e:  # pylint: disable=broad-except
            problems.append(e)

    threads = [threading.Thread(target=use, args=(seed, )) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_errors(path, tmp_path):
    store = heft.ParamStore()
    with pytest.raises(OSError):
        store.add(tmp_path / "none.zt")
    (tmp_path / "bad.zt").write_bytes(b"nothing")
    with pytest.raises(heft.FormatError):
        store.add(tmp_path / "bad.zt")
    with pytest.raises(TypeError):
        store.add(None)
    store.add(path)
    for name in ("x", "", "é", "w0\0"):
        with pytest.raises((KeyError, ValueError)):
            store.acquire(name)
    with pytest.raises(TypeError):
        store.acquire(1)
    store.close()
    store.close()
    for use in (store.names, store.statistics, lambda: store.acquire("w0"), lambda: store.add(path)):
        with pytest.raises(heft.ArgumentError, match="closed"):
            use()
    for budget in (-1, "1", 1 << 70):
        with pytest.raises((ValueError, TypeError, OverflowError)):
            heft.ParamStore(budget)
    damaged = tmp_path / "damaged.zt"
    heft.convert(path, damaged, digest="crc32c")
    data = bytearray(damaged.read_bytes())
    data[data.index(np.float32(3).tobytes() * 4)] ^= 1
    damaged.write_bytes(data)
    store = heft.ParamStore()
    store.add(damaged)
    with pytest.raises(heft.ChecksumError):
        store.acquire("w3")
    assert heft.ParamStore(verify=False)


def test_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "larger_than_memory.py"), run_name="__main__")
    assert "evictions" in capsys.readouterr().out
