/* combine.c - opens the model in which some tensors are computed. */
#include "combine/combine.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include "core/shards/shard_join.h"

enum { ALIGN = 64 };
static const char purpose[] = "to combine models";

typedef struct opening {
    const heft_combination *c;
    const heft_file *base;
    heft_file *out;
    heft_combine_row *rows; /* the source has taken them once it is there */
    bool is_taken;
    uint8_t *is_kept; /* by tensor of the base */
    uint32_t next;    /* computed tensor to add */
    uint32_t shard;   /* number of the source */
    heft_error *err;
} opening;

static size_t bytes_of_rows(const opening *o)
{
    return ((size_t)o->c->count + 1) * sizeof *o->rows;
}

static size_t tensors_of_base(const opening *o)
{
    return (size_t)heft_ix_tensors(&o->base->x) + 1;
}

static heft_str name_of(const opening *o, const heft_combine_tensor *t)
{
    return t->name.len || t->place == HEFT_NONE ? t->name : heft_ix_name(&o->base->x, t->place);
}

/* ---- rows ---- */

static heft_status set_row(opening *o, uint32_t i)
{
    const heft_combine_tensor *t = &o->c->tensors[i];
    heft_combine_row *row = &o->rows[i];
    uint64_t elements, start = i ? row[-1].start + row[-1].bytes : 0, end;
    *row = (heft_combine_row){ .dtype = t->dtype, .is_bytes = t->is_bytes, .start = start };
    row->group = t->group;
    row->first = i && t->group && row[-1].group == t->group ? row[-1].first : i;
    row->name = heft_ix_copy(&o->out->x, name_of(o, t));
    if (!row->name.ptr)
        return HEFT_E_NOMEM;
    if (!heft_product(&elements, t->dims, t->rank) ||
        !heft_dtype_bytes(&row->bytes, t->dtype, elements) || !heft_add(&end, start, row->bytes) ||
        end >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_error_plain(o->err, HEFT_E_LIMIT, "the computed tensors exceed 2^%U bytes",
                                (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    if (!t->is_bytes && !heft_dtype_size(t->dtype))
        return heft_error_plain(o->err, HEFT_E_UNSUPPORTED,
                                "tensor %q: elements of %s share bytes and cannot be computed",
                                row->name, heft_dtype_name(t->dtype));
    if (t->place != HEFT_NONE)
        o->is_kept[t->place] = 0;
    return HEFT_OK;
}

static heft_status set_rows(opening *o)
{
    const heft_allocator *al = o->base->host->allocator;
    size_t tensors = tensors_of_base(o);
    o->rows = heft_alloc(al, bytes_of_rows(o), ALIGN);
    o->is_kept = heft_alloc(al, tensors, ALIGN);
    if (!o->rows || !o->is_kept)
        return heft_error_no_memory(o->err, purpose);
    memset(o->is_kept, 1, tensors);
    for (uint32_t i = 0; o->c->is_dropped && i + 1 < tensors; i++)
        o->is_kept[i] = !o->c->is_dropped[i];
    for (uint32_t i = 0; i < o->c->count; i++)
        HEFT_TRY(set_row(o, i));
    return HEFT_OK;
}

/* ---- the index ---- */

static heft_status add_tensor(opening *o, uint32_t i)
{
    const heft_combine_tensor *t = &o->c->tensors[i];
    const heft_combine_row *row = &o->rows[i];
    heft_tensor to = { .name = row->name, .dtype = t->dtype, .rank = t->rank, .dims = t->dims };
    return heft_join_computed(o->out, &to, o->shard, row->start, row->bytes);
}

/* Add the computed tensors that are in the place of a tensor of the base. */
static heft_status add_instead(void *ctx, uint32_t tensor)
{
    opening *o = ctx;
    heft_status st = HEFT_OK;
    while (!st && o->next < o->c->count && o->c->tensors[o->next].place == tensor)
        st = add_tensor(o, o->next++);
    return st;
}

static heft_status add_source(opening *o)
{
    heft_source *source;
    o->is_taken = true;
    HEFT_TRY(heft_combine_source(&source, o->c, o->rows, o->base->host->allocator, o->err));
    return heft_join_source(o->out, o->c->label, source, &o->shard);
}

static heft_status fill(opening *o)
{
    heft_index *x = &o->out->x;
    const heft_index *from = &o->base->x;
    x->version = from->version; /* the files of adapters have versions of their own */
    HEFT_TRY(set_rows(o));
    HEFT_TRY(add_source(o));
    HEFT_TRY(heft_ix_merge_with(x, from, o->out->joined_files->first_shard, heft_lit(""),
                                o->is_kept, add_instead, o));
    while (o->next < o->c->count)
        HEFT_TRY(add_tensor(o, o->next++));
    for (uint32_t i = 0; i < from->values.len && !o->c->leaves_values;
         i = heft_ix_value_next(from, i))
        HEFT_TRY(heft_ix_copy_value(x, from, i, HEFT_NONE));
    HEFT_TRY(heft_ix_build_name_table(x));
    return x->lost_notes ? heft_error_no_memory(o->err, purpose) : HEFT_OK;
}

heft_status heft_combine_open(heft_file **out, const heft_combination *c, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    opening o = { .c = c, .base = c->files[0], .err = err };
    const heft_allocator *al = o.base->host->allocator;
    *out = NULL;
    heft_file_enter(o.base); /* names are mapped */
    heft_status st = heft_join_begin(&o.out, c->files, c->file_count, 1, err);
    if (!st)
        st = fill(&o);
    if (o.out)
        o.out->x.err = NULL;
    st = heft_file_leave_after(o.base, st, err);
    if (!o.is_taken) {
        heft_free(al, o.rows, bytes_of_rows(&o), ALIGN);
        if (c->ops->close)
            c->ops->close(c->ctx);
    }
    heft_free(al, o.is_kept, tensors_of_base(&o), ALIGN);
    *out = o.out;
    return heft_join_end(out, st, err);
}
