/* dcp.c - distributed checkpoints of PyTorch (DCP): a folder with the index .metadata, and files in
 * which each rank of a training run has stored its pieces of the tensors.
 *
 *   .metadata    a pickle of Metadata
 *                  state_dict_metadata  name -> TensorStorageMetadata: properties, size, and
 *                                       chunks, each with offsets and sizes; or
 *                                       BytesStorageMetadata
 *                  storage_data         MetadataIndex -> _StorageInfo: dcp_storage.c
 *   __0_0.distcp items, one after the other: each is what torch.save() writes for one piece, or for
 *                an object that is not a tensor
 *
 * Reference: torch/distributed/checkpoint of PyTorch 2.  Megatron's MCoreMetadata is a Metadata
 * with one more field.
 */
#include "format/torch/dcp.h"
#include "model/boxes.h"

/* ---- names ---- */

/* Return the name of an entry below the key that the caller has picked; false: it is outside. */
static bool pick_name(heft_dcp *d, heft_str *name)
{
    heft_str pick = d->x->pick;
    if (!pick.len)
        return true;
    bool is_inside = name->len > pick.len + 1 && !memcmp(name->ptr, pick.ptr, pick.len) &&
                     name->ptr[pick.len] == '.';
    if (is_inside)
        *name = (heft_str){ name->ptr + pick.len + 1, name->len - pick.len - 1 };
    d->passed_over += !is_inside;
    return is_inside;
}

static bool is_extra_state(heft_str name)
{
    static const char word[] = "_extra_state";
    const uint8_t *at = (const uint8_t *)name.ptr;
    return heft_str_seek(at, at + name.len, word, sizeof word - 1);
}

/* ---- tensors ---- */

/* Copy the numbers of a tuple with `rank` numbers; false: it is not such a tuple. */
static bool read_numbers(const heft_dcp *d, uint32_t tuple, uint32_t rank, uint64_t *out)
{
    const heft_pickle *p = &d->p;
    if (tuple == HEFT_NONE || heft_pickle_at(p, tuple)->as.items.count != rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!heft_pickle_u64(&out[i], p, heft_pickle_item(p, tuple, i)))
            return false;
    return true;
}

static heft_status reserve_numbers(heft_dcp *d, uint32_t rank)
{
    if (rank <= d->capacity)
        return HEFT_OK;
    d->numbers = heft_arena_alloc(&d->x->arena, 4 * (size_t)rank * sizeof *d->numbers, 8);
    d->capacity = 2 * rank;
    return d->numbers ? HEFT_OK : heft_error_no_memory(d->x->err, "for a piece of a tensor");
}

/* TensorProperties has a tuple as its state, of which the element type comes first. */
static const heft_torch_type *type_of(const heft_pickle *p, uint32_t tensor)
{
    uint32_t properties = heft_torch_field(p, tensor, "properties");
    if (!heft_torch_is(p, properties, "TensorProperties"))
        return NULL;
    uint32_t first = heft_pickle_item(p, heft_pickle_at(p, properties)->as.object.state, 0);
    return heft_torch_type_of_dtype(p, first == HEFT_NONE ? heft_torch_field(p, properties, "dtype")
                                                          : first);
}

static heft_status add_piece(heft_dcp *d, heft_str name, uint32_t chunk, uint32_t rank)
{
    const heft_pickle *p = &d->p;
    uint64_t *offsets = d->numbers, *sizes = rank ? d->numbers + rank : offsets; /* rank 0: NULL */
    uint32_t tuple = heft_dcp_size(p, heft_torch_field(p, chunk, "offsets"));
    heft_ix_box box;
    if (!heft_torch_is(p, chunk, "ChunkStorageMetadata") ||
        !read_numbers(d, tuple, rank, offsets) ||
        !read_numbers(d, heft_dcp_size(p, heft_torch_field(p, chunk, "sizes")), rank, sizes))
        return heft_dcp_fail(d, chunk,
                             "tensor %q: a chunk does not have %U offsets and sizes from 0 on",
                             name, (uint64_t)rank);
    const heft_dcp_item *item = heft_dcp_find(d, name, tuple);
    if (!item)
        return heft_dcp_fail(d, chunk,
                             "tensor %q: storage_data does not say where one of its chunks is "
                             "stored",
                             name);
    HEFT_TRY(heft_dcp_locate(d, item, &box));
    return heft_ix_box_add(d->x, heft_pickle_offset(p, chunk), box, offsets, sizes);
}

static heft_status add_pieces(heft_dcp *d, heft_str name, uint32_t tensor, uint32_t rank)
{
    const heft_pickle *p = &d->p;
    uint32_t chunks = heft_torch_field(p, tensor, "chunks"), chunk;
    if (!heft_pickle_is(p, chunks, HEFT_PICKLE_LIST))
        return heft_dcp_fail(d, tensor, "tensor %q has no list of chunks", name);
    d->chunks += heft_pickle_at(p, chunks)->as.items.count;
    if (d->chunks > p->values.len)
        return heft_dcp_fail(d, chunks, "tensor %q: its chunks are those of other tensors", name);
    heft_pickle_items i = heft_pickle_items_of(p, chunks);
    while (heft_pickle_next(p, &i, &chunk))
        HEFT_TRY(add_piece(d, name, chunk, rank));
    return HEFT_OK;
}

static heft_status add_tensor(heft_dcp *d, heft_str name, uint32_t tensor)
{
    const heft_pickle *p = &d->p;
    uint64_t *dims, at = heft_pickle_offset(p, tensor);
    uint32_t size = heft_dcp_size(p, heft_torch_field(p, tensor, "size")), id;
    const heft_torch_type *type = type_of(p, tensor);
    heft_str shown = name;
    if (!pick_name(d, &shown))
        return HEFT_OK;
    if (size == HEFT_NONE)
        return heft_dcp_fail(d, tensor, "tensor %q has no size of at most 64 dimensions", name);
    uint32_t rank = heft_pickle_at(p, size)->as.items.count;
    HEFT_TRY(reserve_numbers(d, rank));
    if (!type || type->is_quantized || !heft_dtype_size(type->type)) {
        heft_ix_left_out(d->x, HEFT_LEFT_OUT, "torch/unreadable", (heft_range){ at, 0 },
                         "tensor %q: left out: %s", name,
                         type && type->is_quantized
                             ? "quantized tensors of distributed checkpoints are not supported: "
                               "each piece has its own scale"
                             : "its element type is not supported");
        return HEFT_OK;
    }
    if (!read_numbers(d, size, rank, d->numbers))
        return heft_dcp_fail(d, size, "tensor %q: its size has a number below 0", name);
    HEFT_TRY(heft_ix_tensor(d->x, shown, type->type, rank, &dims, &id));
    if (rank)
        memcpy(dims, d->numbers, rank * sizeof *dims);
    HEFT_TRY(heft_ix_assembled_begin(d->x, id, false));
    HEFT_TRY(add_pieces(d, name, tensor, rank));
    HEFT_TRY(heft_ix_assembled_end(d->x, at));
    return heft_torch_keep_name(d->x, id, type, at);
}

/* ---- objects that are not tensors ---- */

/* List the bytes of the object as a part of the file. */
static heft_status add_object(heft_dcp *d, heft_str name, uint32_t value)
{
    heft_str shown = name;
    heft_ix_box box;
    if (!pick_name(d, &shown))
        return HEFT_OK;
    const heft_dcp_item *item = heft_dcp_find(d, name, HEFT_NONE);
    if (!item)
        return heft_dcp_fail(d, value, "storage_data does not say where %q is stored", name);
    HEFT_TRY(heft_dcp_locate(d, item, &box));
    if (is_extra_state(name)) {
        heft_ix_note(d->x, HEFT_NOTE, "torch/extra-state", heft_pickle_offset(&d->p, value),
                     HEFT_NONE,
                     "states of modules (_extra_state), which are not weights, are left out");
        return HEFT_OK;
    }
    heft_range where = { box.offset, box.length };
    if (heft_box_is_zstd(&box))
        heft_ix_note(d->x, HEFT_NOTE, "torch/zstd", heft_pickle_offset(&d->p, value), HEFT_NONE,
                     "objects that are not tensors are listed as they are stored, compressed");
    return heft_ix_part(d->x, HEFT_NONE, shown, HEFT_U8, where, box.length, HEFT_RAW);
}

/* ---- the format ---- */

static heft_status add_entry(heft_dcp *d, uint32_t key, uint32_t value)
{
    const heft_pickle *p = &d->p;
    if (!heft_pickle_is(p, key, HEFT_PICKLE_TEXT))
        return heft_dcp_fail(d, key, "a name in state_dict_metadata is not a text");
    heft_str name = heft_pickle_at(p, key)->as.s;
    if (heft_torch_is(p, value, "TensorStorageMetadata"))
        return add_tensor(d, name, value);
    if (heft_torch_is(p, value, "BytesStorageMetadata"))
        return add_object(d, name, value);
    return heft_dcp_fail(d, value, "%q is neither a tensor nor an object in bytes", name);
}

static heft_status check_pick(const heft_dcp *d)
{
    const heft_index *x = d->x;
    if (!x->pick.len)
        return HEFT_OK;
    if (!x->tensors.len && !x->model_parts.len)
        return heft_error_rule(
            x->err,
            heft_error_plain(x->err, HEFT_E_NOTFOUND, "there is nothing under the key %q", x->pick),
            "heft/no-key");
    if (d->passed_over)
        heft_ix_note_format(d->x, HEFT_NOTE, "torch/outside-key", (heft_range){ HEFT_NOWHERE, 0 },
                            HEFT_NONE, "%U entries outside of the key are left out",
                            (uint64_t)d->passed_over);
    return HEFT_OK;
}

static heft_status read_entries(heft_dcp *d)
{
    const heft_pickle *p = &d->p;
    uint32_t root = p->root, key, value;
    if (!heft_torch_is(p, root, "Metadata") && !heft_torch_is(p, root, "MCoreMetadata"))
        return heft_dcp_fail(d, root, "the pickle is not the Metadata of a checkpoint");
    uint32_t entries = heft_torch_field(p, root, "state_dict_metadata");
    uint32_t storage = heft_torch_field(p, root, "storage_data");
    uint32_t version = heft_torch_field(p, root, "version");
    if (!heft_pickle_is(p, entries, HEFT_PICKLE_DICT) ||
        !heft_pickle_is(p, storage, HEFT_PICKLE_DICT))
        return heft_dcp_fail(d, root, "state_dict_metadata or storage_data is not a dictionary");
    d->x->version = heft_lit("DCP");
    if (heft_pickle_is(p, version, HEFT_PICKLE_TEXT))
        d->x->version = heft_arena_join(&d->x->arena, heft_lit("DCP "),
                                        heft_pickle_at(p, version)->as.s, heft_lit(""));
    if (!d->x->version.ptr)
        return heft_error_no_memory(d->x->err, "for the version");
    HEFT_TRY(heft_dcp_read_storage(d, storage));
    heft_pickle_items i = heft_pickle_items_of(p, entries);
    while (heft_pickle_next(p, &i, &key) && heft_pickle_next(p, &i, &value))
        HEFT_TRY(add_entry(d, key, value));
    return check_pick(d);
}

static heft_status dcp_parse(heft_window *in, heft_index *x)
{
    heft_dcp d = { .in = in, .x = x };
    if (HEFT_IS_LEAN)
        return heft_torch_refuse_lean(x, "distributed checkpoints (DCP)");
    heft_status st = heft_pickle_read(&d.p, in, (heft_range){ 0, in->size }, &x->arena,
                                      ".metadata");
    if (!st)
        st = heft_dcp_check_calls(&d);
    if (!st)
        st = read_entries(&d);
    heft_names_free(&x->mem, &d.files);
    heft_pickle_free(&d.p);
    return st;
}

/* The pickle begins with the name of the class, in protocol 2 or in a frame of protocol 4. */
static bool is_metadata(const uint8_t *head, size_t len)
{
    enum { AHEAD = 80, PROTO = 0x80 };
    static const char *const modules[] = { "torch.distributed.checkpoint.metadata",
                                           "megatron.core.dist_checkpointing.strategies.torch" };
    const uint8_t *end = head + (len < AHEAD ? len : AHEAD);
    for (size_t i = 0; len && *head == PROTO && i < sizeof modules / sizeof *modules; i++)
        if (heft_str_seek(head, end, modules[i], heft_lit(modules[i]).len))
            return true;
    return false;
}

static int dcp_probe(const uint8_t *head, size_t head_len, const uint8_t *tail, size_t tail_len,
                     uint64_t size)
{
    enum { SURE = 80 };
    (void)tail;
    (void)tail_len;
    (void)size;
    return is_metadata(head, head_len) ? SURE : 0;
}

static const heft_name_rules name_rules = { "torch/name", NULL, NULL, "torch/rank" };

const heft_format heft_format_dcp = {
    .name = "dcp",
    .title = "PyTorch distributed checkpoint",
    .structure_rule = "dcp/structure",
    .suffixes = "",
    .versions = "",
    .caps = HEFT_CAN_READ | HEFT_CAN_SCHEMES | HEFT_CAN_OPEN_KEY,
    .align = 64,
    .probe = dcp_probe,
    .parse = dcp_parse,
    .name_rules = &name_rules,
};
