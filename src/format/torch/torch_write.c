/* torch_write.c - plans and writes zip archives that torch.load(weights_only=True) reads: a pickle,
 * and a member for each storage; torch.c shows the layout, zip_plan.c writes the archive.
 *
 * Tensors that lie in the same bytes of the source share a storage.  Version "checkpoint" has the
 * metadata in the pickle, too; the default is a dictionary of tensors only, as
 * Module.load_state_dict() needs it. */
#include "format/torch/torch_write.h"

#include "format/losses.h"
#include "format/shard_index.h"

static const char where[] = "a PyTorch file";

/* ---- tensors ---- */

const char *heft_torch_name_obstacle(const heft_index *x, uint32_t t)
{
    uint64_t steps = 1, dim;
    if (!heft_str_is_utf8(heft_ix_name(x, t)))
        return "a name that is not UTF-8 cannot be stored in a PyTorch file";
    for (uint32_t i = 0; i < heft_ix_row(x, t)->rank; i++) {
        dim = heft_ix_dims(x, t)[i];
        if (dim > INT64_MAX || !heft_mul(&steps, steps, dim ? dim : 1) || steps > INT64_MAX)
            return "the shape is too large for PyTorch";
    }
    return NULL;
}

/* Return the number of elements of a part. */
static uint64_t count_of(const heft_index *x, uint32_t t, const heft_torch_layout *l, uint32_t i)
{
    uint32_t part = heft_ix_part_find(x, t, heft_lit(l->roles[i]));
    const heft_ix_part_row *row = heft_ix_part_row_at(x, part);
    return heft_div(row->length, heft_dtype_size(row->dtype));
}

/* Return true if the parts of a sparse tensor have the lengths that its shape needs. */
static bool has_counts(const heft_index *x, uint32_t t, const heft_torch_layout *l)
{
    uint64_t values = count_of(x, t, l, l->values), first = count_of(x, t, l, 0), coords;
    uint32_t rank = heft_ix_row(x, t)->rank;
    if (l->parts == 2)
        return rank && heft_mul(&coords, values, rank) && first == coords;
    return rank == 2 && first && first - 1 == heft_ix_dims(x, t)[0] &&
           count_of(x, t, l, 1) == values;
}

/* Convert the indices of a sparse tensor to i64, as PyTorch has them, and check the types. */
static heft_status plan_index(heft_plan *p, uint32_t t, heft_ix_part_row *row, const char **why)
{
    bool fits = true;
    if (row->dtype == HEFT_U64 && p->source.is_sorted) /* an invalid index may be out of range */
        HEFT_TRY(p->source.is_sorted(p->source.ctx, t, &fits));
    if (heft_dtype_is_int(row->dtype) && fits)
        HEFT_TRY(heft_loss_index_type(p, "torch/indices", t, row, HEFT_I64));
    if (row->dtype != HEFT_I64)
        *why = fits ? "the indices of the sparse tensor are not integers"
                    : "the entries of the sparse tensor are invalid, or not in ascending order";
    return HEFT_OK;
}

static heft_status plan_sparse(heft_plan *p, uint32_t t, const heft_torch_layout *l,
                               const char **why)
{
    if (heft_ix_row(p->x, t)->part_count != l->parts)
        *why = "the parts of the sparse tensor are not those of its layout";
    for (uint32_t i = 0; i < l->parts && !*why; i++) {
        uint32_t part = heft_ix_part_find(p->x, t, heft_lit(l->roles[i]));
        if (part == HEFT_NONE)
            *why = "a part of the sparse tensor is missing";
        else if (i != l->values)
            HEFT_TRY(plan_index(p, t, heft_ix_part_row_at(p->x, part), why));
        else if (!heft_torch_type_stored_as(heft_ix_part_row_at(p->x, part)->dtype))
            *why = "the values of the sparse tensor have a type that PyTorch lacks";
    }
    if (!*why && !has_counts(p->x, t, l))
        *why = "the parts of the sparse tensor do not fit its shape";
    return HEFT_OK;
}

const char *heft_torch_dense_obstacle(const heft_index *x, uint32_t t)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    uint64_t elements, bytes;
    if (!heft_loss_is_plain(x, t))
        return "only dense tensors, sparse_coo and sparse_csr can be stored in a PyTorch file";
    if (!heft_product(&elements, heft_ix_dims(x, t), row->rank) ||
        !heft_dtype_bytes(&bytes, row->dtype, elements) ||
        bytes != heft_ix_part_row_at(x, row->first_part)->length)
        return "the data size does not match the shape";
    return NULL;
}

static heft_status plan_tensor(heft_plan *p, uint32_t t, bool is_checkpoint)
{
    enum { MAX_RANK = 64 };
    const heft_ix_tensor_row *row = heft_ix_row(p->x, t);
    heft_torch_rebuild r = heft_torch_rebuild_of(p->x, t);
    const heft_torch_layout *l = heft_torch_layout_of(p->x, t);
    if (heft_loss_is_plain(p->x, t) && !r.type)
        return heft_loss_type(p, "torch/dtype", t, where);
    const char *why = heft_torch_name_obstacle(p->x, t);
    if (!why && l)
        HEFT_TRY(plan_sparse(p, t, l, &why));
    else if (!why)
        why = heft_torch_dense_obstacle(p->x, t);
    if (!why && is_checkpoint && heft_str_is(heft_ix_name(p->x, t), heft_torch_metadata))
        why = "the name is that of the metadata of a checkpoint (rename the tensor)";
    why = why ? why : r.lost;
    if (why)
        return heft_loss_tensor(p, "torch/tensor", t, why);
    if (row->rank > MAX_RANK)
        return heft_loss_report(p, HEFT_NOTE, "torch/rank", t,
                                "rank %U: most of PyTorch's functions take at most 64 dimensions",
                                (uint64_t)row->rank);
    return HEFT_OK;
}

/* ---- metadata ---- */

static heft_status lose_metadata(heft_plan *p)
{
    for (uint32_t i = 0; i < p->x->values.len; i = heft_ix_value_next(p->x, i))
        HEFT_TRY(heft_loss_report(p, HEFT_WARNING, "torch/metadata", HEFT_NONE,
                                  "metadata %q is left out: a dictionary of tensors has none "
                                  "(--format-version checkpoint stores it beside the tensors)",
                                  heft_ix_value(p->x, i)->key));
    return HEFT_OK;
}

/* Note which kinds of values Python stores in another form. */
static heft_status note_kinds(heft_plan *p)
{
    for (uint32_t i = 0; i < p->x->values.len; i++) {
        const heft_value *v = heft_ix_value(p->x, i);
        bool is_text = v->kind == HEFT_KIND_STR && heft_str_is_utf8(v->as.s);
        const char *form = v->kind == HEFT_KIND_ARRAY             ? "a list"
                           : v->kind == HEFT_KIND_ID128           ? "bytes"
                           : v->kind == HEFT_KIND_STR && !is_text ? "bytes"
                                                                  : NULL;
        if (form)
            HEFT_TRY(heft_loss_report(p, HEFT_NOTE, "torch/metadata-form", HEFT_NONE,
                                      "metadata %q becomes %s", v->key, form));
        if (!heft_str_is_utf8(v->key))
            return heft_error_plain(p->err, HEFT_E_LOSSY,
                                    "metadata %q: a key that is not UTF-8 cannot be stored in a "
                                    "PyTorch file",
                                    v->key);
    }
    return HEFT_OK;
}

static heft_status plan_metadata(heft_plan *p, heft_torch_plan *t)
{
    if (!t->is_checkpoint)
        return lose_metadata(p);
    t->has_metadata = p->x->values.len;
    return note_kinds(p);
}

/* ---- storages ---- */

/* Give each distinct part a storage, in the order of the parts. */
static heft_status plan_storages(heft_plan *p, heft_torch_plan *t)
{
    heft_zip_plan *z = &t->zip;
    HEFT_TRY(heft_plan_find_shared(p));
    z->members = heft_plan_alloc(p, p->x->parts.len * sizeof *z->members);
    t->storage_of = heft_plan_alloc(p, p->x->parts.len * sizeof *t->storage_of);
    if (!z->members || !t->storage_of)
        return HEFT_E_NOMEM;
    for (uint32_t i = 0; i < heft_ix_tensors(p->x); i++) {
        const heft_ix_tensor_row *row = heft_ix_row(p->x, i);
        for (uint32_t part = row->first_part; part < row->first_part + row->part_count; part++) {
            uint32_t first = p->duplicate_of[part];
            t->storage_of[part] = first == part ? z->count : t->storage_of[first];
            if (first != part)
                continue;
            char digits[20];
            heft_str key = { digits, heft_u64_text(digits, z->count) };
            heft_str name = heft_arena_join(p->arena, heft_lit("archive/data/"), key, heft_lit(""));
            if (!name.ptr)
                return heft_error_no_memory(p->err, "to plan the file");
            z->members[z->count++] = (heft_zip_plan_member){ .name = name, .part = part };
        }
    }
    return HEFT_OK;
}

/* ---- members without tensors, before those with tensors ---- */

static void put_byte_order(const heft_plan *p, heft_out *o)
{
    (void)p;
    heft_out_str(o, heft_lit("little"));
}

static void put_version(const heft_plan *p, heft_out *o)
{
    (void)p;
    heft_out_str(o, heft_lit("3\n"));
}

static const struct {
    const char *name;
    void (*put)(const heft_plan *p, heft_out *o);
} leading[HEFT_TORCH_LEADING] = {
    { "data.pkl", heft_torch_put_pickle },
    { "byteorder", put_byte_order },
    { "version", put_version },
};

static heft_status plan_leading(const heft_plan *p, heft_torch_plan *t, uint64_t *end)
{
    uint8_t buf[4096];
    heft_out count = heft_out_counting();
    for (uint32_t i = 0; i < HEFT_TORCH_LEADING; i++) {
        heft_zip_member *m = &t->leading[i];
        *m = (heft_zip_member){ .head = count.total };
        m->name = heft_arena_join(p->arena, heft_lit("archive/"), heft_lit(leading[i].name),
                                  heft_lit(""));
        if (!m->name.ptr)
            return heft_error_no_memory(p->err, "to plan the file");
        heft_out o = heft_zip_crc_out(buf, sizeof buf, &m->crc);
        leading[i].put(p, &o);
        HEFT_TRY(heft_out_flush(&o));
        if (o.total > UINT32_MAX)
            return heft_error_plain(p->err, HEFT_E_LOSSY,
                                    "the pickle would have %U bytes, more than the limit of 2^32",
                                    o.total);
        m->size = o.total;
        heft_zip_put_header(&count, m);
        count.total += m->size;
        heft_zip_put_descriptor(&count, m);
    }
    t->zip.leading = t->leading;
    t->zip.leading_count = HEFT_TORCH_LEADING;
    *end = count.total;
    return HEFT_OK;
}

/* ---- functions of the format ---- */

/* A pickle without a tensor says nothing about a model, and is not read as one. */
heft_status heft_torch_refuse_empty(heft_plan *p)
{
    static const char text[] = "a PyTorch file needs a tensor, and the model has none";
    return p->allow_loss ? heft_error_plain(p->err, HEFT_E_LOSSY, text)
                         : heft_plan_loss(p, HEFT_FAULT, "torch/no-tensor", HEFT_NONE, text);
}

heft_status heft_torch_plan_file(heft_plan *p)
{
    heft_torch_plan *t = heft_plan_alloc(p, sizeof *t);
    uint64_t end;
    if (!t)
        return HEFT_E_NOMEM;
    p->priv = t;
    t->is_checkpoint = p->version && heft_str_is(heft_lit(p->version), heft_torch_checkpoint);
    if (p->version && !t->is_checkpoint && !heft_str_is(heft_lit(p->version), "3"))
        return heft_error_plain(p->err, HEFT_E_ARGUMENT,
                                "version %s of PyTorch files cannot be written, only 3 and %s",
                                p->version, heft_torch_checkpoint);
    HEFT_TRY(heft_zip_plan_align(p, 1));
    HEFT_TRY(heft_loss_parts(p, "torch/parts", NULL, where));
    HEFT_TRY(plan_metadata(p, t));
    HEFT_TRY(heft_loss_attributes_except(p, "torch/attributes", 0, heft_torch_keeps_attribute));
    for (uint32_t i = 0; i < heft_ix_tensors(p->x); i++)
        HEFT_TRY(plan_tensor(p, i, t->is_checkpoint));
    heft_plan_compact(p);
    if (!heft_ix_tensors(p->x))
        return heft_torch_refuse_empty(p);
    HEFT_TRY(plan_storages(p, t));
    HEFT_TRY(plan_leading(p, t, &end));
    HEFT_TRY(heft_zip_plan_place(p, &t->zip, end));
    for (uint32_t i = 0; i < p->x->parts.len; i++) {
        heft_ix_part_row *part = heft_ix_part_row_at(p->x, i);
        const heft_ix_part_row *first = heft_ix_part_row_at(p->x, p->duplicate_of[i]);
        part->offset = first->offset;
        part->stored = first->stored;
    }
    return HEFT_OK;
}

heft_status heft_torch_write_header(const heft_plan *p, heft_out *o)
{
    const heft_torch_plan *t = p->priv;
    for (uint32_t i = 0; i < HEFT_TORCH_LEADING; i++) {
        heft_zip_put_header(o, &t->leading[i]);
        leading[i].put(p, o);
        heft_zip_put_descriptor(o, &t->leading[i]);
    }
    return o->st;
}

heft_status heft_torch_write_record_header(const heft_plan *p, uint32_t part, heft_out *o)
{
    const heft_torch_plan *t = p->priv;
    return heft_zip_plan_record_header(p, &t->zip, part, o);
}

heft_status heft_torch_write_trailer(const heft_plan *p, heft_out *o)
{
    const heft_torch_plan *t = p->priv;
    return heft_zip_plan_trailer(p, &t->zip, o);
}

/* ---- models in several files, in the layout of the transformers library ---- */

static void put_shard_name(heft_out *o, heft_str stem, uint32_t i, uint32_t count)
{
    heft_shard_index_put_name(o, stem, i, count, ".bin");
}

static void put_shard_index(heft_out *o, const heft_shard_set *s)
{
    heft_shard_index_put(o, s, put_shard_name);
}

const heft_sharding heft_torch_sharding = { .name = put_shard_name, .index = put_shard_index };
