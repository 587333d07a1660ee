"""dcp_folder.py: writes distributed checkpoints (DCP) with PyTorch's torch.save() for the pieces.

The classes of torch.distributed.checkpoint are stood in for by classes with the same modules, names
and states, so that any PyTorch writes what version 2 does."""
import collections
import enum
import io
import pathlib
import pickle
import sys
import types

import torch

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"
MEGATRON = "megatron.core.dist_checkpointing.strategies.torch"


class Fields:
    """An object whose pickle is a call of the class without arguments, and a dict of fields."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def stand_in(module, name, base=Fields):
    """Return a class that pickles as module.name."""
    c = type(name, (base,), {"__module__": module, "__qualname__": name})
    parts = module.split(".")
    for i in range(1, len(parts) + 1): # pickle imports every package on the way
        path = ".".join(parts[:i])
        if path not in sys.modules:
            sys.modules[path] = types.ModuleType(path)
    setattr(sys.modules[module], name, c)
    return c


class Bits:
    """A tensor of torch.bits8, which this PyTorch need not have, in the form of later ones."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        t = self.tensor
        return (torch._utils._rebuild_tensor_v3,
                (t.storage(), 0, tuple(t.shape), t.stride(), False, collections.OrderedDict(),
                 torch.bits8))


class Global:
    """An object that pickles as torch.NAME."""
    __module__ = "torch"

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return self.name


def rebuild_v3():
    raise NotImplementedError


if not hasattr(torch, "bits8"):
    torch.bits8 = Global("bits8")
if not hasattr(torch._utils, "_rebuild_tensor_v3"):
    rebuild_v3.__module__, rebuild_v3.__qualname__ = "torch._utils", "_rebuild_tensor_v3"
    torch._utils._rebuild_tensor_v3 = rebuild_v3


class Properties:
    """TensorProperties has a tuple as its state."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __getstate__(self):
        return (self.dtype, torch.strided, False, ENCODING.TORCH_CONTIGUOUS_FORMAT, False)


def enumeration(module, name):
    c = enum.Enum(name, {"TORCH_CONTIGUOUS_FORMAT": 0, "TORCH_CHANNELS_LAST": 1}, module=module,
                  qualname=name)
    setattr(sys.modules[module], name, c)
    return c


Metadata = stand_in(METADATA, "Metadata")
MCoreMetadata = stand_in(MEGATRON, "MCoreMetadata")
TensorStorageMetadata = stand_in(METADATA, "TensorStorageMetadata")
ChunkStorageMetadata = stand_in(METADATA, "ChunkStorageMetadata")
BytesStorageMetadata = stand_in(METADATA, "BytesStorageMetadata")
MetadataIndex = stand_in(METADATA, "MetadataIndex")
StorageMeta = stand_in(METADATA, "StorageMeta")
StorageInfo = stand_in(FILESYSTEM, "_StorageInfo")
TensorProperties = stand_in(METADATA, "TensorProperties", Properties)
ENCODING = enumeration(METADATA, "_MEM_FORMAT_ENCODING")


def row_pieces(shape, ranks):
    """Cut along dimension 0 as torch.chunk() does."""
    if not shape:
        return [((), ())]
    each = -(-shape[0] // ranks)
    starts = range(0, shape[0], each or 1)
    return [((at, ) + (0, ) * (len(shape) - 1), (min(each, shape[0] - at), ) + tuple(shape[1:]))
            for at in starts]


def column_pieces(shape, ranks):
    """Cut along the last dimension."""
    each = -(-shape[-1] // ranks)
    return [((0, ) * (len(shape) - 1) + (at, ),
             tuple(shape[:-1]) + (min(each, shape[-1] - at), ))
            for at in range(0, shape[-1], each)]


def grid_pieces(shape, rows, columns):
    """Cut along two dimensions, as tensor parallelism over FSDP does."""
    return [((r[0][0], c[0][1]), (r[1][0], c[1][1]))
            for r in row_pieces(shape, rows) for c in column_pieces(shape, columns)]


class Folder:
    """A checkpoint; `edit` changes the Metadata before it is written."""

    def __init__(self, path, ranks, transform=None):
        """transform: a name, and a function of the bytes of an item."""
        self.transform = transform
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.files = [bytearray() for _ in range(ranks)]
        self.entries, self.storage, self.planner, self.tensors = {}, {}, {}, {}

    def add_item(self, rank, value, **save):
        buffer = io.BytesIO()
        torch.save(value, buffer, **save)
        file, item, more = self.files[rank], buffer.getvalue(), {}
        if self.transform:
            more = {"transform_descriptors": [self.transform[0]]}
            item = self.transform[1](item)
        file += item
        return StorageInfo(relative_path=f"__{rank}_0.distcp", offset=len(file) - len(item),
                           length=len(item), **more)

    def add_object(self, name, value):
        self.entries[name] = BytesStorageMetadata()
        self.storage[MetadataIndex(fqn=name, index=None)] = self.add_item(0, value)
        self.planner[name] = tuple(name.split("."))

    def add_tensor(self, name, tensor, pieces, of=None, **save):
        """pieces: offsets and sizes; the ranks store them in turn. of: what is stored."""
        chunks = []
        for i, (offsets, sizes) in enumerate(pieces):
            piece = tensor[tuple(slice(o, o + s) for o, s in zip(offsets, sizes))].clone()
            piece = of(piece, i) if of else piece.contiguous()
            info = self.add_item(i % len(self.files), piece, **save)
            chunks.append(ChunkStorageMetadata(offsets=torch.Size(offsets),
                                               sizes=torch.Size(sizes)))
            index = MetadataIndex(fqn=name, offset=torch.Size(offsets), index=i)
            self.storage[index] = info
        self.entries[name] = TensorStorageMetadata(properties=TensorProperties(tensor.dtype),
                                                   size=tensor.size(), chunks=chunks)
        self.planner[name] = tuple(name.split("."))
        self.tensors[name] = tensor

    def write(self, protocol=4, edit=None, cls=Metadata, **more):
        for rank, content in enumerate(self.files):
            (self.path / f"__{rank}_0.distcp").write_bytes(content)
        meta = cls(state_dict_metadata=self.entries, planner_data=self.planner,
                   storage_data=self.storage,
                   storage_meta=StorageMeta(checkpoint_id=pathlib.PurePosixPath("/x"),
                                            save_id="id", load_id=None, modules=[]),
                   version="1.0.0", **more)
        if edit:
            edit(meta)
        (self.path / ".metadata").write_bytes(pickle.dumps(meta, protocol))
        return self.path


# ---- files of ranks ----

TENSOR, PLACEMENTS = "torch.distributed.tensor", "torch.distributed.tensor.placement_types"
DTensor = stand_in(TENSOR, "DTensor")
DTensorSpec = stand_in("torch.distributed.tensor._dtensor_spec", "DTensorSpec")
DeviceMesh = stand_in("torch.distributed.device_mesh", "DeviceMesh")
Shard = stand_in(PLACEMENTS, "Shard")
Replicate = stand_in(PLACEMENTS, "Replicate")
Partial = stand_in(PLACEMENTS, "Partial")
StridedShard = stand_in(PLACEMENTS, "_StridedShard")
ShardedTensor = stand_in("torch.distributed._shard.sharded_tensor.api", "ShardedTensor")
ShardedTensorMetadata = stand_in("torch.distributed._shard.sharded_tensor.metadata",
                                 "ShardedTensorMetadata")
LocalShard = stand_in("torch.distributed._shard.sharded_tensor.shard", "Shard")
ShardMetadata = stand_in("torch.distributed._shard.metadata", "ShardMetadata")


class Rebuilt:
    """A value that pickles as the call that rebuilds a tensor of a subclass."""

    def __init__(self, cls, tensor, state):
        args = (cls, tensor.dtype, tensor.size(), tensor.stride(), 0, torch.strided,
                torch.device("cpu"), False)
        self.call = (torch._utils._rebuild_wrapper_subclass, cls, args, state)

    def __reduce__(self):
        return (torch._tensor._rebuild_from_type_v2, self.call)


def chunk_of(size, ranks, rank):
    """Return the range that torch.chunk() gives to a rank."""
    each = -(-size // ranks)
    return min(rank * each, size), min((rank + 1) * each, size)


def distribute(whole, mesh, coordinate, placements):
    """Return the DTensor of the rank at the coordinate; mesh: a tensor of ranks."""
    local = whole
    strided = [i for i, p in enumerate(placements) if isinstance(p, StridedShard)]
    plain = [i for i, p in enumerate(placements) if isinstance(p, Shard)]
    for i in plain + strided:
        dim = placements[i].dim
        begin, end = chunk_of(local.shape[dim], mesh.shape[i], coordinate[i])
        local = local.narrow(dim, begin, end - begin)
    device_mesh = DeviceMesh(device_type="cpu", mesh=mesh, mesh_dim_names=None,
                             _coordinate_on_dim=list(coordinate))
    spec = DTensorSpec(mesh=device_mesh, placements=tuple(placements), tensor_meta=None)
    state = (None, {"_local_tensor": local.clone().contiguous(), "_spec": spec})
    return Rebuilt(DTensor, whole, state)


def sharded(whole, offsets, sizes):
    """Return the ShardedTensor of a rank with one shard."""
    local = whole[tuple(slice(o, o + s) for o, s in zip(offsets, sizes))].clone()
    where = ShardMetadata(shard_offsets=list(offsets), shard_sizes=list(sizes), placement=None)
    shard = LocalShard(tensor=local, metadata=where)
    meta = ShardedTensorMetadata(shards_metadata=[where], size=whole.size(),
                                 tensor_properties=None)
    return Rebuilt(ShardedTensor, whole, ([shard], meta, None, None, False))
