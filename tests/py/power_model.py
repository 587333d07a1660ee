"""power_model.py - the states of a folder after a power loss, given the record of the system calls
of a command (record_calls.c).

The model: the power may be lost after every call. The disk keeps synced data and names; all else is
in the cache, and may be lost.

- The data of a file are on disk once the file is synced (fsync). Each write and each change of the
  size since the last sync may be lost, kept or torn: any sectors of 512 bytes may be kept, and a
  sector has the bytes of any moment since the last sync. The size is the size of any moment since
  the last sync; bytes within the size that were not kept are zeros.
- The names in a folder are on disk once the folder is synced. The changes of names since the last
  sync (create, link, rename, unlink, mkdir) may be lost: the last changes, as on file systems with
  a journal, or any changes, as on file systems without a journal. A rename is kept or lost whole.
- A sync of a file does not keep the name of the file, and a sync of a folder does not keep the data
  of the files in the folder. sync_file_range() and fallocate() guarantee nothing.

Permissions, owners and attributes are not modelled."""
import dataclasses
import functools
import pathlib
import struct

SECTOR = 512
ENUMERATED = 4  # every subset of the last four changes of names is tried
HEADER = struct.Struct("<8sQQQQII")


@dataclasses.dataclass
class Call:
    name: str
    file: int
    folder: int
    at: int
    length: int
    entry: str = ""
    new_entry: str = ""
    data: bytes = b""


def read_calls(path):
    raw, at, calls = pathlib.Path(path).read_bytes(), 0, []
    while at < len(raw):
        name, file, folder, offset, length, entry, new_entry = HEADER.unpack_from(raw, at)
        at += HEADER.size
        call = Call(name.rstrip(b"\0").decode(), file, folder, offset, length)
        call.entry = raw[at:at + entry].decode()
        call.new_entry = raw[at + entry:at + entry + new_entry].decode()
        at += entry + new_entry
        if call.name == "write":
            call.data = raw[at:at + length]
            at += length
        calls.append(call)
    return calls


def identity(path):
    info = path.lstat()
    return (info.st_dev << 48 ^ info.st_ino) & (1 << 64) - 1


def changed(data, call):
    """Return the bytes of a file after a call."""
    if call.name == "size":
        return data[:call.length].ljust(call.length, b"\0")
    if call.name == "reserve":
        return data.ljust(call.length, b"\0")
    data = data.ljust(call.at, b"\0")
    return data[:call.at] + call.data + data[call.at + len(call.data):]


def sectors(call):
    """Divide a write at the bounds of sectors."""
    end = call.at + len(call.data)
    bounds = [call.at, *range((call.at // SECTOR + 1) * SECTOR, end, SECTOR), end]
    for begin, end in zip(bounds, bounds[1:]):
        yield dataclasses.replace(call, at=begin, data=call.data[begin - call.at:end - call.at])


def torn(call, rng):
    """Return some sectors of a write: the first sectors, or any sectors."""
    parts = list(sectors(call))
    if rng.random() < 0.5:
        return parts[:rng.randrange(len(parts) + 1)]
    return [part for part in parts if rng.random() < 0.5]


class File:
    def __init__(self, key, data=b""):
        self.key, self.data, self.pending = key, data, []

    def sync(self):
        self.data, self.pending = self.all(), []

    def all(self):
        data = self.data
        for call in self.pending:
            data = changed(data, call)
        return data

    def half(self, is_first):
        """Keep the first half of the sectors of each write, or the second half."""
        data = self.data
        for call in self.pending:
            parts = list(sectors(call)) if call.data else [call]
            middle = (len(parts) + is_first) // 2
            for part in parts[:middle] if is_first else parts[middle:]:
                data = changed(data, part)
        return data

    def some(self, rng):
        """Lose, keep or tear each call."""
        data = self.data
        for call in self.pending:
            fate = rng.randrange(3)
            if fate == 2 and call.data:
                for part in torn(call, rng):
                    data = changed(data, part)
            elif fate:
                data = changed(data, call)
        return data

    def mixed(self, rng):
        """Take each sector from some moment since the last sync."""
        moments = [self.data]
        for call in self.pending:
            moments.append(changed(moments[-1], call))
        size = len(rng.choice(moments))
        parts = (rng.choice(moments)[at:at + SECTOR] for at in range(0, size, SECTOR))
        return b"".join(part.ljust(SECTOR, b"\0") for part in parts)[:size]

    def lost(self, rng):
        if not self.pending:
            return self.data
        return rng.choice([lambda: self.data, self.all, lambda: self.some(rng),
                           lambda: self.mixed(rng)])()


class Folder:
    def __init__(self, key, entries):
        self.key, self.entries, self.pending = key, entries, []

    def after(self, changes):
        """Return the entries after changes; an earlier change may be missing."""
        entries = dict(self.entries)
        for gone, come, node in changes:
            if gone and entries.get(gone) is node:
                del entries[gone]
            if come:
                entries[come] = node
        return entries

    def sync(self):
        self.entries, self.pending = self.all(), []

    def all(self):
        return self.after(self.pending)

    def kept(self, mask):
        """Keep the last changes with a set bit, and all earlier changes."""
        first = max(len(self.pending) - ENUMERATED, 0)
        return self.after(c for i, c in enumerate(self.pending, -first)
                          if i < 0 or mask >> i & 1)

    def lost(self, rng):
        if rng.random() < 0.5:
            return self.after(self.pending[:rng.randrange(len(self.pending) + 1)])
        return self.after(c for c in self.pending if rng.random() < 0.5)


class Disk:
    """The folder of a command after some calls, in the cache and on disk."""

    def __init__(self, root):
        self.nodes = {}  # by identity; a new file may get the identity of a removed file
        self.root = self.scan(pathlib.Path(root))

    def scan(self, path):
        key = identity(path)
        if path.is_dir():
            node = Folder(key, {p.name: self.scan(p) for p in path.iterdir()})
        else:
            node = File(key, path.read_bytes())
        return self.nodes.setdefault(key, node)  # hard links are the same file

    def do(self, call):
        if call.name in ("create", "unnamed"):
            self.nodes[call.file] = File(call.file)
        elif call.name == "mkdir":
            self.nodes[call.file] = Folder(call.file, {})
        node, folder = self.nodes.get(call.file), self.nodes.get(call.folder)
        if not node:
            return  # a file outside of the folder
        if call.name == "sync":
            node.sync()
        elif call.name in ("write", "size", "reserve"):
            node.pending.append(call)
        elif folder and call.name in ("create", "link", "mkdir"):
            folder.pending.append((None, call.entry, node))
        elif folder and call.name == "rename":
            folder.pending.append((call.entry, call.new_entry, node))
        elif folder and call.name == "unlink":
            folder.pending.append((call.entry, None, node))

    def state(self, names, data):
        """Return {path: (bytes, identity)}, with the entries names(folder) and bytes data(file)."""
        files, chosen = {}, {}

        def walk(folder, prefix):
            for name, node in names(folder).items():
                if isinstance(node, Folder):
                    walk(node, f"{prefix}{name}/")
                    continue
                if node not in chosen:
                    chosen[node] = data(node)
                files[prefix + name] = chosen[node], node.key

        walk(self.root, "")
        return files

    def plain_states(self):
        """Yield the states with all data, the synced data, or half of each write; and with all
        names, the synced names, and each subset of the last changes."""
        most = max(len(n.pending) for n in self.nodes.values() if isinstance(n, Folder))
        masks = range(1 << min(most, ENUMERATED))
        for names in (Folder.all, lambda folder: folder.entries,
                      *(functools.partial(Folder.kept, mask=m) for m in masks)):
            for data in (File.all, lambda file: file.data, lambda file: file.half(True),
                         lambda file: file.half(False)):
                yield self.state(names, data)

    def random_state(self, rng):
        return self.state(lambda folder: folder.lost(rng), lambda file: file.lost(rng))
