"""crash_judge.py - decide whether a kill or a power loss left the old files or the new files."""
import re

from blake3_ref import blake3
from crash_scenes import contents, without_left
from power_model import identity

SYSTEM = 4
NOTE, HASH = ".heft-replaced", 32
STAGED = re.compile(r"/heft-set\.(\d+\.new|journal-new)$")  # heft edit removes these files


def state_of(folder):
    """Return {path: (bytes, identity)} of the files of a folder."""
    return {name: (data, identity(folder / name)) for name, data in contents(folder).items()}


def files_of(state):
    """Return {path: bytes} without the files that a kill may leave."""
    return without_left({name: data for name, (data, _) in state.items()})


class Judge:
    """Decide whether a state has the old files or the new files."""

    def __init__(self, commands, scene, folder, good):
        self.commands, self.scene, self.folder = commands, scene, folder
        self.folder.mkdir()
        self.now, self.verdicts = {}, {}
        self.old, self.new = scene.old, without_left(good)
        self.digests = set()
        self.put({name: (data, None) for name, data in contents(scene.start).items()})
        self.recover()  # some scenes start with an interrupted command
        if without_left(self.now) != self.old:
            raise RuntimeError(f"heft edit recovers other files: {sorted(self.now)}")
        for files in (self.old, self.new):
            self.put({name: (data, None) for name, data in files.items()})
            self.digests.add(self.digest())

    def heft(self, *args):
        return self.commands.run(*args)

    def main(self):
        return str(self.folder / self.scene.main)

    def digest(self):
        """Return the exit status and the last line of `heft hash`."""
        p = self.heft("hash", self.main())
        return p.returncode, "".join(p.stdout.splitlines()[-1:])

    def recover(self):
        p = self.heft("edit", self.main())
        self.now = contents(self.folder)
        return p

    def put(self, state):
        for name in set(self.now) - set(state):
            (self.folder / name).unlink()
        for name, (data, _) in state.items():
            if self.now.get(name) != data:
                path = self.folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
        for name, (data, key) in state.items():
            if name.endswith(NOTE):
                self.put_note(name, data, state.get(name[:-len(NOTE)], (b"", None))[1])
        self.now = {name: data for name, (data, _) in state.items()}

    def put_note(self, name, data, key):
        """Let the note name the inode that the file has here."""
        path = self.folder / name[:-len(NOTE)]
        if not path.exists() or len(data) < HASH or blake3(data[:-HASH]) != data[-HASH:]:
            return
        device, inode = (int.from_bytes(data[at:at + 8], "little") for at in (16, 24))
        info = path.stat()
        is_it = key == (device << 48 ^ inode) & (1 << 64) - 1
        text = data[:16] + b"".join(
            n.to_bytes(8, "little") for n in (info.st_dev, info.st_ino if is_it else 0))
        text += data[32:-HASH]
        (self.folder / name).write_bytes(text + blake3(text))

    def is_settled(self, state):
        return files_of(state) in (self.old, self.new)

    def is_new(self, state):
        return files_of(state) == self.new

    def wrong(self, state):
        """Return a complaint or None, and whether the new files are there without recovery."""
        files = files_of(state)
        if files in (self.old, self.new):
            return None, files == self.new
        is_new = {n: data for n, data in files.items() if not STAGED.search(n)} == self.new
        self.put(state)
        code, digest = self.digest()
        if code not in (0, SYSTEM) or (code == 0 and (code, digest) not in self.digests):
            return f"hash ends with {code}: {digest}", False
        p = self.recover()
        after = without_left(self.now)
        if p.returncode and "nothing to change" not in p.stderr:
            return f"edit ends with {p.returncode}: {p.stderr[:200].strip()}", False
        if after not in (self.old, self.new):
            differ = {n for whole in (self.old, self.new) for n in set(after) | set(whole)
                      if after.get(n) != whole.get(n)}
            return f"neither old nor new after edit: {sorted(differ)}", False
        return None, is_new

    def verdict(self, state):
        key = hash(tuple(sorted(state.items())))
        if key not in self.verdicts:
            self.verdicts[key] = self.wrong(state)
        return self.verdicts[key]
