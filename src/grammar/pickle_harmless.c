/* pickle_harmless.c - the names that a pickle of weights may import. */
#include "base/text.h"
#include "grammar/pickle_scan.h"

typedef struct harmless_names {
    const char *module;
    const char *names; /* each name is preceded and followed by a space */
} harmless_names;

/* Types of tensors on each kind of device. */
#define TENSORS                                                                            \
    " DoubleTensor FloatTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor" \
    " CharTensor ByteTensor BoolTensor "

static const harmless_names harmless[] = {
    { "torch._utils",
      " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_qtensor"
      " _rebuild_sparse_tensor _rebuild_sparse_csr_tensor _rebuild_parameter"
      " _rebuild_parameter_with_state _rebuild_meta_tensor_no_storage _rebuild_nested_tensor"
      " _rebuild_wrapper_subclass _rebuild_device_tensor_from_numpy"
      " _rebuild_device_tensor_from_cpu_tensor _rebuild_xla_tensor " },
    { "torch._tensor", " Tensor _rebuild_from_type _rebuild_from_type_v2 " },
    { "torch.serialization", " _get_layout " },
    { "torch.storage", " UntypedStorage TypedStorage _UntypedStorage _TypedStorage " },
    { "torch.nn.parameter", " Parameter Buffer " },
    { "torch.autograd.variable", " Variable " },
    { "torch.jit._pickle", " build_intlist build_doublelist build_boollist build_tensorlist"
                           " restore_type_tag " },
    { "torch", " Size device Tensor DoubleStorage FloatStorage HalfStorage BFloat16Storage"
               " LongStorage IntStorage ShortStorage CharStorage ByteStorage BoolStorage"
               " ComplexFloatStorage ComplexDoubleStorage QInt8Storage QUInt8Storage QInt32Storage"
               " QUInt4x2Storage QUInt2x4Storage UntypedStorage"
               " float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2"
               " float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 int64 int32 int16 int8 uint64"
               " uint32 uint16 uint8 bool complex32 complex64 complex128 qint8 quint8 qint32"
               " quint4x2 quint2x4 per_tensor_affine per_channel_affine per_tensor_symmetric"
               " per_channel_symmetric per_channel_affine_float_qparams" TENSORS },
    { "torch.cuda", " DoubleStorage FloatStorage HalfStorage BFloat16Storage LongStorage IntStorage"
                    " ShortStorage CharStorage ByteStorage BoolStorage ComplexFloatStorage"
                    " ComplexDoubleStorage" TENSORS },
    { "torch.sparse", TENSORS },
    { "torch.cuda.sparse", TENSORS },
    { "collections", " OrderedDict defaultdict Counter " },
    { "builtins", " set frozenset bytearray complex dict list tuple int float bool " },
    { "__builtin__", " set frozenset bytearray complex dict list tuple int float bool " },
    { "_codecs", " encode " },
    { "numpy", " ndarray dtype " },
    { "numpy.core.multiarray", " _reconstruct scalar " },
    { "numpy._core.multiarray", " _reconstruct scalar " },
    { "numpy.core.numeric", " _frombuffer " },
    { "numpy._core.numeric", " _frombuffer " },
};

/* Compare the name with each word of the list; names in pickles may hold spaces. */
static bool is_listed(const char *names, heft_str name)
{
    for (const char *word = names + 1; *word;) {
        size_t len = 0;
        while (word[len] != ' ')
            len++;
        if (len == name.len && !memcmp(word, name.ptr, len))
            return true;
        word += len + 1;
    }
    return false;
}

/* Python has no modules below __torch__, so that a file which only claims to be TorchScript gains
 * nothing. */
static bool is_script_module(heft_str module)
{
    return heft_str_is(module, "__torch__") || heft_str_begins(module, "__torch__.");
}

bool heft_pickle_is_harmless(heft_str module, heft_str name, bool is_script)
{
    if (is_script && is_script_module(module))
        return true;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (heft_str_is(module, harmless[i].module))
            return is_listed(harmless[i].names, name);
    return false;
}
