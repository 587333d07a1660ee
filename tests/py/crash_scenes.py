"""crash_scenes.py - the commands that write files, each with the folder where the command starts,
for the tests of kills and power losses. record_calls.c is preloaded into the commands."""
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

from onnx_proto import constant, content, number, tensor

KILLED = -9
# A kill may leave temporary files and the note about a replaced file until the next command.
LEFT = re.compile(r"(^|/)(\..*\.heft-new|[^/]*\.heft-journal-new|[^/]*\.heft-replaced)$")
SHARES = re.compile(r"(^|/)[^/]*\.shares/")  # stay for the next attempt
TARGETS = ["bpk", "gptrs", "gten", "zt", "weights", "mag", "safetensors", "gguf", "npz", "npy"]
TENSORS = 10  # names that take several sectors
RENAMED = ["--rename", "layer.0.weight=layer.a.weight", "--rename", "layer.9.weight=layer.b.weight"]
SIMPLE_TITLE = ", simple file system"
SIMPLE = ["convert to zt", "replace zt", "convert by a share", "split", "split again",
          "edit by a new file", "append to zt", "append to safetensors", "replace after a kill",
          "undo: split again"]
ONE_TENSOR = {"npy": ["--keep", "layer.0.*"]}
LONG = "x" * 9000  # does not fit into the present header


@dataclasses.dataclass
class Scene:
    title: str
    main: str  # the file or folder that the command changes
    args: list
    start: pathlib.Path  # the folder at the start
    old: dict = None  # the files of the folder, without an interrupted command
    beside: str = ""  # a file that main names, and the command changes
    is_simple: bool = False  # the file system lacks what record_calls.c says


def safetensors(tensors, seed=0, **metadata):
    """A model of different tensors, of 320 bytes each."""
    at, header, data = 0, {"__metadata__": metadata}, b""
    for n, name in enumerate(tensors):
        header[name] = {"dtype": "F32", "shape": [10, 8], "data_offsets": [at, at + 320]}
        data += struct.pack("<80f", *(seed + 1000 * n + i for i in range(80)))
        at += 320
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def next_step(names):
    """The first model with one other value in each tensor, and only other values in the last."""
    data = bytearray(safetensors(names, license="MIT"))
    for n in range(1, len(names) + 1):
        data[len(data) - 320 * n] ^= 1
    return bytes(data[:-320]) + safetensors(names, seed=0.5)[-320:]


def wide(value):
    """A model of three blocks of 65,536 units, of which some in each are the value."""
    data = bytearray(3 << 16)
    data[7::5000] = bytes([value]) * len(data[7::5000])
    header = json.dumps({"w": {"dtype": "U8", "shape": [3, 1 << 16],
                               "data_offsets": [0, len(data)]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


def contents(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def without_shares(files):
    return {name: data for name, data in files.items() if not SHARES.search(name)}


def without_left(files):
    return {name: data for name, data in without_shares(files).items() if not LEFT.search(name)}


class Runner:
    """Run the command with record_calls.c."""

    def __init__(self, heft, shim):
        self.heft, self.shim = heft, shim

    def run(self, folder, scene, record=None, kill_at=0, kill="before"):
        """Run the command of a scene in a folder."""
        env = os.environ | {"LD_PRELOAD": self.shim}
        if scene.is_simple:
            env["HEFT_SIMPLE"] = "1"
        if record:
            env["HEFT_RECORD"] = str(record)
        if kill_at:
            env |= {"HEFT_KILL_AT": str(kill_at), "HEFT_KILL": kill}
        return subprocess.run([self.heft, *scene.args], cwd=folder, env=env, capture_output=True)

    def plain(self, folder, args):
        return subprocess.run([self.heft, *args], cwd=folder, capture_output=True)


def copy_folder(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target


def interrupted(runner, scene, folder, is_wanted):
    """Copy the scene's folder and kill the command at the first call that leaves wanted files."""
    for n in range(1, 1000):
        copy_folder(scene.start, folder)
        if runner.run(folder, scene, kill_at=n).returncode != KILLED:
            break
        if is_wanted(contents(folder)):
            return folder
    raise RuntimeError(f"{scene.title}: no kill leaves the wanted files")


def with_own_folder(scene, root):
    """Return the scene with only the files and folders that the command names."""
    folder = root / f"start {scene.title}"
    folder.mkdir()
    for path in scene.start.iterdir():
        is_named = any(arg.split("=")[-1] == path.name for arg in scene.args)
        is_named = is_named or path.name == scene.beside
        if is_named and path.is_dir():
            shutil.copytree(path, folder / path.name)
        elif is_named:
            shutil.copy(path, folder)
    return dataclasses.replace(scene, start=folder, old=contents(folder))


def make_onnx(folder):
    """Write models with two weights, in the model and in a file, and other values for one."""
    elements = [struct.pack("<8192f", *range(at, at + 8192)) for at in (0, 9000)]
    (folder / "o.data").write_bytes(b"".join(elements))
    graphs = {"in.onnx": b"", "out.onnx": b""}
    for i, data in enumerate(elements):
        facts = {"location": "o.data", "offset": str(i * len(data)), "length": str(len(data))}
        outside = b"".join(content(13, content(1, key) + content(2, text))
                           for key, text in facts.items()) + number(14, 1)
        graphs["in.onnx"] += constant(f"w{i}", 1, [8192], data)
        graphs["out.onnx"] += content(5, tensor(f"w{i}", 1, [8192], outside))
    for name, graph in graphs.items():
        (folder / name).write_bytes(number(1, 7) + content(7, graph))
    header = json.dumps(
        {"w1": {"dtype": "F32", "shape": [8192], "data_offsets": [0, len(elements[0])]}})
    (folder / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode() +
                                           struct.pack("<8192f", *range(8192, 0, -1)))


def make_models(runner, folder):
    folder.mkdir()
    names = [f"layer.{i}.weight" for i in range(TENSORS)]
    (folder / "m.safetensors").write_bytes(safetensors(names, license="MIT"))
    (folder / "n.safetensors").write_bytes(safetensors(names, seed=50000, license="GPL"))
    (folder / "other.safetensors").write_bytes(safetensors(["more"], seed=90000))
    make_onnx(folder)
    made = [["convert", "--allow-loss", *ONE_TENSOR.get(t, []), "n.safetensors", f"f.{t}"]
            for t in TARGETS]
    (folder / "step.safetensors").write_bytes(next_step(names))
    (folder / "wide.safetensors").write_bytes(wide(1))
    (folder / "wide-step.safetensors").write_bytes(wide(2))
    made += [["delta", "m.safetensors", "step.safetensors", "-o", "d.zt"],
             ["delta", "wide.safetensors", "wide-step.safetensors", "-o", "wide.zt"],
             ["split", "--count", "2", "n.safetensors", "set"],
             ["split", "--count", "3", "--to", "dcp", "n.safetensors", "pieces"]]
    for args in made:
        p = runner.plain(folder, args)
        if p.returncode:
            raise RuntimeError(f"{args}: {p.stderr.decode()}")
    return folder


def usual_scenes(start):
    def scene(title, main, *args):
        return Scene(title, main, list(args), start)

    convert = "convert", "-j1", "--allow-loss"
    yield from (scene(f"convert to {t}", f"o.{t}", *convert, *ONE_TENSOR.get(t, []),
                      "m.safetensors", f"o.{t}")
                for t in TARGETS)
    yield scene("convert, compressed", "o.zt", *convert, "--compress", "zstd", "--digest",
                "sha256", "m.safetensors", "o.zt")
    yield from (scene(f"replace {t}", f"f.{t}", *convert, "--force", "m.safetensors", f"f.{t}")
                for t in ("zt", "safetensors"))
    yield from (scene(f"{title} by a share", main, *convert, "--share", "1/1", *more,
                      "m.safetensors", main)
                for title, main, *more in [["convert", "o.zt"], ["replace", "f.zt", "--force"]])
    yield scene("split", "o", "split", "-j1", "--count", "2", "m.safetensors", "o")
    yield scene("split to zTensor", "o", "split", "-j1", "--count", "2", "--to", "ztensor",
                "m.safetensors", "o")
    yield scene("split to DCP", "o", "split", "-j1", "--count", "2", "--to", "dcp",
                "m.safetensors", "o")
    yield scene("convert to DCP", "o", *convert, "--to", "dcp", "m.safetensors", "o")
    yield scene("convert from DCP", "o.safetensors", *convert, "pieces", "o.safetensors")
    yield scene("split again", "set", "split", "-j1", "--force", "-c3", "m.safetensors", "set")
    yield scene("merge", "o.gguf", "merge", "-j1", "set", "o.gguf")
    yield scene("merge files", "o.zt", "merge", "-j1", "m.safetensors", "other.safetensors",
                "o.zt")
    yield scene("delta", "o.zt", "delta", "-j1", "m.safetensors", "n.safetensors", "-o", "o.zt")
    yield scene("apply", "o.safetensors", "apply", "-j1", "m.safetensors", "d.zt", "-o",
                "o.safetensors")
    yield scene("apply in place", "m.safetensors", "apply", "-j1", "m.safetensors", "d.zt",
                "--in-place")
    yield scene("apply in place, several blocks", "wide.safetensors", "apply", "-j1",
                "wide.safetensors", "wide.zt", "--in-place")
    yield from (scene(f"edit {t}", f"f.{t}", "edit", *RENAMED, f"f.{t}")
                for t in TARGETS if t != "npy")
    yield scene("edit by a new file", "f.safetensors", "edit", "--set", "zz=" + LONG,
                "f.safetensors")
    yield scene("edit, longer", "f.zt", "edit", "--set", "zz=" + LONG, "f.zt")
    yield scene("blend", "o.zt", "blend", "-j1", "--method", "linear", "m.safetensors",
                "f.safetensors", "o.zt")
    yield from (scene(f"replace tensors of {t}", f"f.{t}", "edit", "--tensor",
                      "layer.1.weight=m.safetensors", "--tensor", "layer.8.weight=m.safetensors",
                      f"f.{t}")
                for t in TARGETS if t != "npy")
    yield scene("replace tensors of onnx", "in.onnx", "edit", "--tensor", "w1=w.safetensors",
                "in.onnx")
    yield Scene("replace tensors of onnx outside", "out.onnx",
                ["edit", "--tensor", "w1=w.safetensors", "out.onnx"], start, beside="o.data")
    yield from (scene(f"append to {t}", f"f.{t}", "append", "-j1", f"f.{t}",
                      "other.safetensors")
                for t in TARGETS if t != "npy")


class Interrupted:
    """The folder of a killed command, and the files before the command and after it."""

    def __init__(self, runner, scenes, root, title, journal, is_wanted):
        scene = next(s for s in scenes if s.title == title)
        self.main, self.before = scene.main, scene.old
        whole = copy_folder(scene.start, root / f"whole {title}")
        runner.run(whole, scene)
        self.after = contents(whole)
        self.folder = interrupted(
            runner, scene, root / f"half {title}",
            lambda files: journal in files and is_wanted(self.before, files))

    def add(self, name, data):
        (self.folder / name).write_bytes(data)
        self.before = self.before | {name: data}

    def scene(self, title, *args):
        return Scene(title, self.main, list(args), self.folder, self.before)


def recovery_scenes(runner, scenes, root):
    """Yield scenes that start with the files of a killed command."""
    def is_changed(name):
        return lambda before, files: before[name] != files[name]

    def has_new(names):
        return lambda before, files: fnmatch.filter(set(files) - set(before), names)

    edit = Interrupted(runner, scenes, root, "edit safetensors", "f.safetensors.heft-journal",
                       is_changed("f.safetensors"))
    edit.add("more.safetensors", safetensors(["more"], seed=90000))
    yield edit.scene("roll back an edit", "edit", edit.main)
    yield edit.scene("edit after a kill", "edit", *RENAMED, edit.main)
    yield edit.scene("append after a kill", "append", "-j1", edit.main, "more.safetensors")
    yield edit.scene("replace after a kill", "convert", "-j1", "--force", "more.safetensors",
                     edit.main)
    append = Interrupted(runner, scenes, root, "append to zt", "f.zt.heft-journal",
                         is_changed("f.zt"))
    yield append.scene("roll back an append", "edit", append.main)
    for title, main in (("split", "o"), ("split again", "set")):
        split = Interrupted(runner, scenes, root, title, f"{main}/heft-set.journal",
                            has_new(f"{main}/model-00001-of-*"))
        damaged = copy_folder(split.folder, root / f"undo {title}")
        next(damaged.glob("*/heft-set.*.new")).unlink()
        yield dataclasses.replace(split.scene(f"undo: {title}", "edit", main), start=damaged)
        yield dataclasses.replace(split.scene(f"complete: {title}", "edit", main), old=split.after)


def all_scenes(runner, root):
    """Return every scene, with folders below root."""
    models = make_models(runner, root / "models")
    scenes = [with_own_folder(s, root) for s in usual_scenes(models)]
    scenes += recovery_scenes(runner, scenes, root)
    return scenes + [dataclasses.replace(s, title=s.title + SIMPLE_TITLE, is_simple=True)
                     for s in scenes if s.title in SIMPLE]
