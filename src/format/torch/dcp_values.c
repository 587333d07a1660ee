/* dcp_values.c - values of the pickle in .metadata: instances of the classes of DCP.
 *
 * An instance is made by calling the class without arguments, and gets its fields as a dictionary.
 * Fields that Heft does not use may have members of enumerations and paths. */
#include "format/torch/dcp.h"

/* Calls that a pickle of DCP has; names are between spaces. */
static const struct {
    const char *module, *names;
} calls[] = {
    { "torch.distributed.checkpoint.metadata",
      " Metadata TensorStorageMetadata ChunkStorageMetadata BytesStorageMetadata MetadataIndex"
      " StorageMeta TensorProperties _MEM_FORMAT_ENCODING " },
    { "torch.distributed.checkpoint.filesystem", " _StorageInfo " },
    { "torch.distributed.checkpoint.planner",
      " SavePlan WriteItem TensorWriteData BytesIOWriteData WriteItemType " },
    { "torch.distributed._shard.sharded_tensor.metadata",
      " TensorProperties MEM_FORMAT_ENCODING " },
    { "megatron.core.dist_checkpointing.strategies.torch", " MCoreMetadata MCoreSavePlan " },
    { "torch", " Size device " },
    { "torch.serialization", " _get_layout " },
    { "pathlib", " PosixPath WindowsPath PurePosixPath PureWindowsPath Path " },
    { "pathlib._local", " PosixPath WindowsPath PurePosixPath PureWindowsPath Path " },
    { "collections", " OrderedDict " },
};

static bool is_allowed(const heft_pickle *p, uint32_t callable)
{
    if (!heft_pickle_is(p, callable, HEFT_PICKLE_GLOBAL))
        return false;
    heft_str module = heft_pickle_module(p, callable), name = heft_pickle_name(p, callable);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (heft_str_is(module, calls[i].module) &&
            heft_str_has_word(heft_lit(calls[i].names), name))
            return true;
    return false;
}

/* Python 3.11 stores a member of an enumeration as getattr(class, "MEMBER"). */
static bool is_member(const heft_pickle *p, const heft_pickle_value *call)
{
    uint32_t callable = call->as.object.callable,
             class = heft_pickle_item(p, call->as.object.args, 0);
    bool is_getattr = heft_pickle_is_global(p, callable, "builtins", "getattr") ||
                      heft_pickle_is_global(p, callable, "__builtin__", "getattr");
    return is_getattr && is_allowed(p, class) &&
           (heft_str_ends(heft_pickle_name(p, class), "MEM_FORMAT_ENCODING") ||
            heft_str_is(heft_pickle_name(p, class), "WriteItemType"));
}

heft_status heft_dcp_check_calls(const heft_dcp *d)
{
    const heft_pickle *p = &d->p;
    for (uint32_t i = 0; i < p->values.len; i++) {
        const heft_pickle_value *v = heft_pickle_at(p, i);
        if (v->kind == HEFT_PICKLE_PERSISTENT)
            return heft_dcp_fail(d, i, "the pickle refers to an object outside of it");
        if (v->kind != HEFT_PICKLE_OBJECT || is_allowed(p, v->as.object.callable) ||
            is_member(p, v))
            continue;
        if (!heft_pickle_is(p, v->as.object.callable, HEFT_PICKLE_GLOBAL))
            return heft_dcp_fail(d, i, "the pickle calls a function without a name");
        return heft_dcp_fail(d, i,
                             "the pickle calls %q of the module %q, which is not a class of "
                             "DCP: Heft does not call it, and Python would",
                             heft_pickle_name(p, v->as.object.callable),
                             heft_pickle_module(p, v->as.object.callable));
    }
    return HEFT_OK;
}

uint32_t heft_dcp_size(const heft_pickle *p, uint32_t v)
{
    enum { MAX_RANK = 64 }; /* PyTorch's limit; a tuple may be shared by many chunks */
    if (heft_torch_is(p, v, "Size"))
        v = heft_pickle_item(p, heft_pickle_at(p, v)->as.object.args, 0);
    bool is_tuple = heft_pickle_is(p, v, HEFT_PICKLE_TUPLE);
    return is_tuple && heft_pickle_at(p, v)->as.items.count <= MAX_RANK ? v : HEFT_NONE;
}

heft_status heft_dcp_fail(const heft_dcp *d, uint32_t value, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_error_set_list(d->x->err, HEFT_E_FORMAT, heft_pickle_offset(&d->p, value), fmt, &ap);
    va_end(ap);
    return HEFT_E_FORMAT;
}
