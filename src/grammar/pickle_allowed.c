/* pickle_allowed.c - the table of names that a pickle of weights may import. */
#include "grammar/pickle_trace.h"

#include "base/text.h"

/* Types of tensors and storages on each kind of device. */
#define TENSORS                                                                            \
    " DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor" \
    " CharTensor ByteTensor BoolTensor "
#define STORAGES                                                                     \
    " DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage" \
    " ShortStorage CharStorage ByteStorage BoolStorage ComplexFloatStorage"          \
    " ComplexDoubleStorage QInt8Storage QUInt8Storage QInt32Storage QUInt4x2Storage" \
    " QUInt2x4Storage UntypedStorage "
#define CONTAINERS " set frozenset complex dict list tuple int float bool "
#define PATHS      " PosixPath WindowsPath PurePosixPath PureWindowsPath Path "
#define PLACEMENTS " Shard Replicate Partial _Partial _StridedShard "

static const heft_pickle_allowed allowed[] = {
    /* PyTorch: functions that rebuild tensors, and the types of tensors */
    { "torch._utils",
      " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_qtensor"
      " _rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_parameter"
      " _rebuild_parameter_with_state _rebuild_meta_tensor_no_storage _rebuild_nested_tensor"
      " _rebuild_wrapper_subclass _rebuild_device_tensor_from_numpy"
      " _rebuild_device_tensor_from_cpu_tensor _rebuild_xla_tensor ",
      HEFT_CALL_ANY },
    { "torch._tensor", " _rebuild_from_type _rebuild_from_type_v2 ", HEFT_CALL_REBUILD },
    { "torch._tensor", " Tensor ", HEFT_CALL_ANY },
    { "torch.serialization", " _get_layout ", HEFT_CALL_ANY },
    { "torch.storage", " UntypedStorage TypedStorage _UntypedStorage _TypedStorage ",
      HEFT_CALL_ANY },
    { "torch.nn.parameter", " Parameter Buffer ", HEFT_CALL_ANY },
    { "torch.autograd.variable", " Variable ", HEFT_CALL_ANY },
    { "torch.jit._pickle",
      " build_intlist build_doublelist build_boollist build_tensorlist restore_type_tag ",
      HEFT_CALL_IDENTITY },
    { "torch", " Size device Tensor ", HEFT_CALL_ANY },
    { "torch", STORAGES, HEFT_CALL_ANY },
    { "torch", TENSORS, HEFT_CALL_ANY },
    { "torch",
      " float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2"
      " float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 int64 int32 int16 int8 uint64 uint32"
      " uint16 uint8 bool complex32 complex64 complex128 qint8 quint8 qint32 quint4x2 quint2x4"
      " per_tensor_affine per_channel_affine per_tensor_symmetric per_channel_symmetric"
      " per_channel_affine_float_qparams ",
      HEFT_CALL_NEVER },
    { "torch.cuda", STORAGES, HEFT_CALL_ANY },
    { "torch.cuda", TENSORS, HEFT_CALL_ANY },
    { "torch.sparse", TENSORS, HEFT_CALL_ANY },
    { "torch.cuda.sparse", TENSORS, HEFT_CALL_ANY },

    /* distributed checkpoints, and tensors that are distributed over devices */
    { "torch.distributed.checkpoint.metadata",
      " Metadata TensorStorageMetadata ChunkStorageMetadata BytesStorageMetadata MetadataIndex"
      " StorageMeta TensorProperties ",
      HEFT_CALL_ANY },
    { "torch.distributed.checkpoint.metadata", " _MEM_FORMAT_ENCODING ", HEFT_CALL_ENUM },
    { "torch.distributed.checkpoint.filesystem", " _StorageInfo ", HEFT_CALL_ANY },
    { "torch.distributed.checkpoint.planner",
      " SavePlan WriteItem TensorWriteData BytesIOWriteData ", HEFT_CALL_ANY },
    { "torch.distributed.checkpoint.planner", " WriteItemType ", HEFT_CALL_ENUM },
    { "megatron.core.dist_checkpointing.strategies.torch", " MCoreMetadata MCoreSavePlan ",
      HEFT_CALL_ANY },
    { "torch.distributed._shard.metadata", " ShardMetadata ", HEFT_CALL_ANY },
    { "torch.distributed._shard.sharded_tensor.metadata",
      " TensorProperties ShardedTensorMetadata ", HEFT_CALL_ANY },
    { "torch.distributed._shard.sharded_tensor.metadata", " MEM_FORMAT_ENCODING ", HEFT_CALL_ENUM },
    { "torch.distributed._shard.sharded_tensor.shard", " Shard ", HEFT_CALL_ANY },
    { "torch.distributed._shard.sharded_tensor.api", " ShardedTensor ", HEFT_CALL_OUTER },
    { "torch.distributed._shard.sharding_spec.api", " EnumerableShardingSpec ", HEFT_CALL_ANY },
    { "torch.distributed._shard.sharding_spec.chunk_sharding_spec", " ChunkShardingSpec ",
      HEFT_CALL_ANY },
    { "torch.distributed.remote_device", " _remote_device ", HEFT_CALL_ANY },
    { "torch.distributed.tensor", " DTensor ", HEFT_CALL_ANY },
    { "torch.distributed.tensor._dtensor_spec", " DTensorSpec TensorMeta ", HEFT_CALL_ANY },
    { "torch.distributed.tensor.placement_types", PLACEMENTS, HEFT_CALL_ANY },
    { "torch.distributed.device_mesh", " DeviceMesh ", HEFT_CALL_ANY },
    { "torch.distributed._tensor.api", " DTensor ", HEFT_CALL_ANY },
    { "torch.distributed._tensor.placement_types", PLACEMENTS, HEFT_CALL_ANY },
    { "torch.distributed._tensor.placement_types", " DTensorSpec TensorMeta ", HEFT_CALL_ANY },
    { "torch.distributed._tensor.device_mesh", " DeviceMesh ", HEFT_CALL_ANY },

    /* checkpoints of DeepSpeed */
    { "deepspeed.runtime.zero.config", " ZeroStageEnum ", HEFT_CALL_ENUM },
    { "deepspeed.runtime.fp16.loss_scaler", " LossScaler DynamicLossScaler ", HEFT_CALL_ANY },
    { "deepspeed.checkpoint.universal_checkpoint", " SubparamShape ", HEFT_CALL_ANY },
    { "deepspeed.utils.tensor_fragment", " fragment_address ", HEFT_CALL_ANY },

    /* NumPy: the types of elements and of arrays are a way to memory when they are crafted */
    { "numpy", " ndarray ", HEFT_CALL_NEVER },
    { "numpy", " dtype ", HEFT_CALL_DTYPE },
    { "numpy.core.multiarray", " _reconstruct ", HEFT_CALL_RECONSTRUCT },
    { "numpy._core.multiarray", " _reconstruct ", HEFT_CALL_RECONSTRUCT },
    { "numpy.core.multiarray", " scalar ", HEFT_CALL_SCALAR },
    { "numpy._core.multiarray", " scalar ", HEFT_CALL_SCALAR },
    { "numpy.core.numeric", " _frombuffer ", HEFT_CALL_FROM_BUFFER },
    { "numpy._core.numeric", " _frombuffer ", HEFT_CALL_FROM_BUFFER },
    { "joblib.numpy_pickle", " NumpyArrayWrapper ", HEFT_CALL_ARRAY_WRAPPER },

    /* Python */
    { "collections", " OrderedDict Counter ", HEFT_CALL_ANY },
    { "argparse", " Namespace ",
      HEFT_CALL_ANY }, /* the settings of a run, of Megatron and others */
    { "collections", " defaultdict ", HEFT_CALL_FACTORY },
    { "builtins", CONTAINERS, HEFT_CALL_ANY },
    { "builtins", " bytearray ", HEFT_CALL_BYTES },
    { "builtins", " getattr ", HEFT_CALL_GETATTR },
    { "__builtin__", CONTAINERS, HEFT_CALL_ANY },
    { "__builtin__", " bytearray ", HEFT_CALL_BYTES },
    { "__builtin__", " getattr ", HEFT_CALL_GETATTR },
    { "_codecs", " encode ", HEFT_CALL_ENCODE },
    { "pathlib", PATHS, HEFT_CALL_ANY },
    { "pathlib._local", PATHS, HEFT_CALL_ANY },
};

/* Python has no modules below __torch__, so that a file which only claims to be TorchScript gains
 * nothing. */
static bool is_script_module(heft_str module)
{
    return heft_str_is(module, "__torch__") || heft_str_begins(module, "__torch__.");
}

const heft_pickle_allowed *heft_pickle_allow(heft_str module, heft_str name, bool is_script)
{
    static const heft_pickle_allowed script = { "__torch__", " ", HEFT_CALL_ANY };
    if (is_script && is_script_module(module))
        return &script;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (heft_str_is(module, allowed[i].module) &&
            heft_str_has_word(heft_lit(allowed[i].names), name))
            return allowed + i;
    return NULL;
}
