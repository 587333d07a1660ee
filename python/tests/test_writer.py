"""heft.Writer, judged by reading with NumPy and by the command."""
import gc
import os
import struct
import threading
import time

import heft
import pytest

np = pytest.importorskip("numpy")


def test_declared_tensors(tmp_path):
    path = tmp_path / "m.safetensors"
    w = np.arange(12, dtype="f4").reshape(3, 4)
    with heft.Writer(path, metadata={"license": "MIT"}) as out:
        rows = out.declare("w", "f32", w.shape)
        ids = out.declare("ids", "i64", (2, ))
        assert not path.exists()
        out.begin()
        for row in w:
            rows.write(row)
        out.write(ids, struct.pack("<q", 7))
        ids.write(memoryview(struct.pack("<q", 8)))
        assert repr(ids) == "<heft.Part 1: 'data'>"
    with heft.open(path) as f:
        assert f.metadata == {"license": "MIT"}
        assert np.array_equal(f["w"].numpy(), w)
        assert f["ids"].numpy().tolist() == [7, 8]


def test_a_training_run(tmp_path):
    path = tmp_path / "run.zt"
    with heft.Writer(path, version="2", compress="zstd", digest="xxh3") as out:
        out.begin()
        for step in range(20):
            out.append(f"step{step}/w", np.full((64, 64), step, "f4"))
            out.append(f"step{step}/raw", np.arange(4, dtype="u1"), digest="sha256")
            out.set(f"loss{step}", 1 / (step + 1))
    f = heft.open(path)
    assert len(f) == 40 and f.metadata["loss3"] == 0.25
    assert all((f[f"step{i}/w"].numpy() == i).all() for i in range(20))
    assert f["step0/w"].parts[0]["encoding"] == "zstd"
    assert heft.verify(path)


def test_sparse_and_other_layouts(tmp_path):
    path = tmp_path / "m.zt"
    with heft.Writer(path, version="2") as out:
        parts = out.declare("s", "f32", (2, 3), layout="sparse_csr",
                            parts=[("values", "f32", 2), ("indices", "u64", 2), ("indptr", "u64", 3)])
        own = out.declare("o", None, (4, ), layout="mine", parts=[("codes", "u8", 5)])
        out.begin()
        for part, data in zip([*parts, *own], (np.array([1, 2], "f4"), np.array([0, 2], "u8"),
                                               np.array([0, 1, 2], "u8"), b"abcde")):
            part.write(data)
    f = heft.open(path)
    assert f["s"].layout == "sparse_csr"
    assert {p["role"]: p["nbytes"] for p in f["s"].parts} == {"values": 8, "indices": 16,
                                                              "indptr": 24}
    assert f["o"].layout == "mine"


def test_nothing_is_left_behind(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(ZeroDivisionError):
        with heft.Writer(path) as out:
            out.declare("w", "f32", (1000, ))
            out.begin()
            1 / 0
    assert not os.listdir(tmp_path)
    out = heft.Writer(path)
    out.declare("w", "f32", (2, ))
    out.begin()
    del out
    gc.collect()
    assert not os.listdir(tmp_path)
    heft.save({"w": np.zeros(1)}, path)
    before = path.read_bytes()
    with pytest.raises(heft.Error), heft.Writer(path) as out:
        out.declare("w", "f32", (2, ))  # no bytes are written
    assert path.read_bytes() == before
    with pytest.raises(heft.ArgumentError, match="exists"):
        heft.Writer(path, replace=False).finish()


def test_losses(tmp_path):
    with pytest.warns(heft.LossWarning):
        with heft.Writer(tmp_path / "m.npz", metadata={"k": "v"}) as out:
            out.declare("w", "f32", (1, ))
            out.begin()
            out.write(heft._writer.Part(out, 0, "data"), bytes(4))
    out = heft.Writer(tmp_path / "m.mag", allow_loss=False)
    with pytest.raises(heft.LossError), pytest.warns(heft.LossWarning):
        out.declare("w", "c128", (1, ))
        out.begin()
    out.discard()
    assert os.listdir(tmp_path) == ["m.npz"]


def test_wrong_use(tmp_path):
    path = tmp_path / "m.safetensors"
    out = heft.Writer(path)
    part = out.declare("w", "f32", (2, ))
    with pytest.raises(heft.Error):
        part.write(bytes(4))  # before begin()
    for arguments in ((1, "f32", (2, )), ("x", 1, (2, )), ("x", "f32", (-1, )), ("x", "f32", ("a", )),
                      ("x", "f12", (2, )), ("x", "f32", (1 << 70, ))):
        with pytest.raises((TypeError, ValueError, OverflowError, heft.Error)):
            out.declare(*arguments)
    with pytest.raises((TypeError, ValueError)):
        out.declare("x", "f32", (1, ), parts=[("values", )])
    for count in (-1, 1 << 64, 1.5, None):
        with pytest.raises((TypeError, OverflowError)):
            out.declare("x", None, (1, ), layout="mine", parts=[("codes", "u8", count)])
    with pytest.raises(TypeError):
        out.set("k", [1])
    out.begin()
    with pytest.raises(heft.Error):
        out.append("late", np.zeros(1, "f4"))  # the format does not grow
    with pytest.raises(TypeError):
        part.write("text")
    with pytest.raises(heft.Error):
        part.write(bytes(9))  # too many
    out.discard()
    out.discard()
    for use in (out.begin, out.finish, lambda: part.write(b""), lambda: out.set("k", "v")):
        with pytest.raises(heft.ArgumentError, match="closed"):
            use()
    for arguments in ({"format": "nothing"}, {"digest": "md4"}, {"version": "99"}, {"align": 3}):
        with pytest.raises(heft.Error):
            heft.Writer(path, **arguments).finish()
    for bad in (None, 3, "a\0b"):
        with pytest.raises((TypeError, ValueError)):
            heft.Writer(bad)
    with pytest.raises(heft.ArgumentError, match="suffix"):
        heft.Writer(tmp_path / "none.xyz")
    with pytest.raises(OSError):
        heft.Writer(tmp_path / "no" / "folder.zt").finish()
    assert not os.listdir(tmp_path)


def test_a_callback_cannot_use_the_writer(tmp_path, monkeypatch):
    seen = []

    def callback(*_):
        with pytest.raises(heft.ArgumentError, match="in use"):
            out.set("k", "v")
        with pytest.raises(heft.ArgumentError, match="in use"):
            out.discard()
        seen.append(1)

    monkeypatch.setattr(heft._writer, "warn_of_loss", callback)
    out = heft.Writer(tmp_path / "m.npz", metadata={"k": "v"})
    out.declare("w", "f32", (0, ))
    out.finish()
    assert seen


def test_threads_take_turns(tmp_path):
    out = heft.Writer(tmp_path / "m.zt", version="2", digest="sha256")
    part = out.declare("w", "u8", (8 << 20, ))
    out.begin()
    block, done = bytes(1 << 17), []

    def write():
        for _ in range(8):
            while True:
                try:
                    part.write(block)
                    done.append(1)
                    break
                except heft.ArgumentError as e:
                    assert "in use" in str(e)
                    time.sleep(0.001)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    out.finish()
    assert len(done) == 64 and heft.verify(tmp_path / "m.zt")
