/* logical_file.c - opens the model that a file with quantised tensors represents. */
#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"
#include <heft/check.h>

#include "core/shards/shard_join.h"
#include "logical/logical.h"

enum { ALIGN = 64 };

static const char purpose[] = "to decode quantised tensors";

typedef struct logical_file {
    const heft_file *f;
    const heft_schemes *s;
    heft_decode_options opt;
    heft_file *out;
    heft_logical_tensor *all;
    bool is_taken;    /* by the source */
    uint32_t count;   /* decoded tensors */
    uint32_t most;    /* tensors that `all` has room for */
    uint32_t *number; /* by stored tensor that is decoded: number in `all` */
    uint8_t *is_kept; /* by stored tensor */
    bool has_blocks;  /* a tensor of a block type is decoded */
    uint32_t shard;   /* number of the source */
    heft_error *err;
} logical_file;

static size_t bytes_of_all(const logical_file *l)
{
    return ((size_t)l->most + 1) * sizeof *l->all;
}

/* ---- what is decoded ---- */

static bool is_of_blocks(heft_dtype t)
{
    const heft_dtype_info *info = heft_dtype_get(t);
    return info && info->kind == HEFT_DTYPE_BLOCK;
}

/* Compare the checksums that the file stores for the parts: their bytes are not seen otherwise. */
static heft_status verify_parts(const logical_file *l, const heft_decoding *d)
{
    for (int k = 0; k < HEFT_ROLES; k++) {
        const heft_decoding_part *p = &d->part[k];
        if (p->tensor != HEFT_NONE)
            HEFT_TRY(heft_part_verify(NULL, l->f, p->part, l->err));
    }
    return HEFT_OK;
}

/* Give the opened tensor its place in the source. */
static heft_status place_tensor(logical_file *l)
{
    heft_logical_tensor *t = &l->all[l->count++];
    const heft_logical_tensor *before = l->count > 1 ? t - 1 : NULL;
    uint64_t elements = t->d.stack * t->d.rows * t->d.columns;
    t->as = l->opt.as ? l->opt.as : t->d.dtype;
    t->d.refuses_infinity = l->opt.refuses_infinity;
    t->start = before ? before->start + before->bytes : 0;
    if (!heft_dtype_bytes(&t->bytes, t->as, elements) ||
        (t->start + t->bytes) >> HEFT_GLOBAL_OFFSET_BITS)
        return heft_error_plain(l->err, HEFT_E_LIMIT, "the decoded tensors exceed 2^%U bytes",
                                (uint64_t)HEFT_GLOBAL_OFFSET_BITS);
    l->has_blocks = l->has_blocks || is_of_blocks(t->d.part[HEFT_ROLE_WEIGHT].dtype);
    return l->opt.verify ? verify_parts(l, &t->d) : HEFT_OK;
}

static void take_stored(logical_file *l, uint32_t stored)
{
    l->is_kept[stored] = 0;
    l->number[stored] = l->count;
}

static heft_status add_tensor(logical_file *l, uint32_t i)
{
    heft_status st = heft_decoding_open(&l->all[l->count].d, l->f, l->s, i, l->err);
    if (st == HEFT_E_UNSUPPORTED && l->opt.keeps_undecoded)
        return HEFT_OK;
    if (st)
        return st;
    for (uint32_t k = 0; k < heft_schemes_at(l->s, i).part_count; k++)
        take_stored(l, heft_schemes_part_at(l->s, i, k).tensor);
    return place_tensor(l);
}

static bool is_alone_in_blocks(const logical_file *l, uint32_t tensor)
{
    return l->opt.decodes_blocks && is_of_blocks(heft_ix_row(&l->f->x, tensor)->dtype) &&
           heft_schemes_find(l->s, tensor) == HEFT_NONE;
}

static heft_status add_blocks(logical_file *l, uint32_t tensor)
{
    HEFT_TRY(heft_decoding_open_blocks(&l->all[l->count].d, l->f, tensor, l->err));
    take_stored(l, tensor);
    return place_tensor(l);
}

static heft_status find_tensors(logical_file *l)
{
    uint32_t all = heft_schemes_count(l->s), tensors = heft_ix_tensors(&l->f->x);
    const heft_allocator *al = l->f->host->allocator;
    l->most = all;
    for (uint32_t i = 0; i < tensors; i++)
        l->most += is_alone_in_blocks(l, i);
    l->all = heft_alloc(al, bytes_of_all(l), ALIGN);
    l->number = heft_alloc(al, ((size_t)tensors + 1) * sizeof *l->number, ALIGN);
    l->is_kept = heft_alloc(al, (size_t)tensors + 1, ALIGN);
    if (!l->all || !l->number || !l->is_kept)
        return heft_error_no_memory(l->err, purpose);
    memset(l->is_kept, 1, (size_t)tensors + 1);
    for (uint32_t i = 0; i < all; i++)
        HEFT_TRY(add_tensor(l, i));
    HEFT_TRY(l->count ? heft_refuse_unscaled(l->f, l->s, l->err) : HEFT_OK);
    for (uint32_t i = 0; i < tensors; i++)
        if (is_alone_in_blocks(l, i))
            HEFT_TRY(add_blocks(l, i));
    return HEFT_OK;
}

/* ---- the index ---- */

/* Add the decoded tensor in the place of its weight, as the parameter that this is. */
static heft_status add_instead(void *ctx, uint32_t tensor)
{
    logical_file *l = ctx;
    const heft_logical_tensor *t = l->all + l->number[tensor];
    if (t->d.part[HEFT_ROLE_WEIGHT].tensor != tensor)
        return HEFT_OK;
    heft_str name = heft_ix_copy(&l->out->x, t->d.name);
    heft_tensor row = { .name = name, .dtype = t->as, .rank = t->d.rank, .dims = t->d.dims };
    heft_identity id = heft_ix_identity(&l->f->x, tensor);
    if (!name.ptr)
        return HEFT_E_NOMEM;
    HEFT_TRY(heft_join_computed(l->out, &row, l->shard, t->start, t->bytes));
    return heft_ix_identify(&l->out->x, heft_ix_tensors(&l->out->x) - 1, &id);
}

static heft_status add_source(logical_file *l)
{
    heft_file *f = l->out;
    heft_source *source;
    l->is_taken = true;
    HEFT_TRY(heft_logical_source(&source, l->all, l->count, bytes_of_all(l), f->host->allocator,
                                 l->err));
    return heft_join_source(f, heft_lit("decoded tensors"), source, &l->shard);
}

/* A model that keeps quantised tensors keeps what describes them. */
static heft_status add_values(logical_file *l)
{
    heft_index *x = &l->out->x;
    const heft_index *from = &l->f->x;
    heft_status st = HEFT_OK;
    if (!l->opt.keeps_undecoded)
        return heft_logical_values(x, from, l->has_blocks, l->f->host->allocator);
    for (uint32_t i = 0; i < from->values.len && !st; i = heft_ix_value_next(from, i))
        st = heft_ix_copy_value(x, from, i, HEFT_NONE);
    return st;
}

static heft_status fill(logical_file *l)
{
    heft_index *x = &l->out->x;
    heft_status st = add_source(l);
    if (!st)
        st = heft_ix_merge_with(x, &l->f->x, l->out->joined_files->first_shard,
                                (heft_str){ NULL, 0 }, l->is_kept, add_instead, l);
    if (!st)
        st = add_values(l);
    if (!st)
        st = heft_ix_build_name_table(x);
    if (!st && x->lost_notes)
        st = heft_error_no_memory(l->err, purpose);
    x->err = NULL;
    return st;
}

heft_status heft_schemes_decode(heft_file **out, const heft_file *f, const heft_schemes *s,
                                const heft_decode_options *opt, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    logical_file l = { .f = f, .s = s, .opt = HEFT_DECODE_OPTIONS_INIT, .err = err };
    const heft_allocator *al = f->host->allocator;
    *out = NULL;
    HEFT_TRY(heft_sized_copy(&l.opt, sizeof l.opt, opt, err));
    heft_file_enter(f); /* names are mapped */
    heft_status st = find_tensors(&l);
    if (!st)
        st = heft_join_begin(&l.out, &f, 1, 1, err);
    if (!st)
        st = fill(&l);
    st = heft_file_leave_after(f, st, err);
    *out = l.out;
    if (!l.is_taken)
        heft_free(al, l.all, bytes_of_all(&l), ALIGN);
    heft_free(al, l.number, ((size_t)heft_ix_tensors(&f->x) + 1) * sizeof *l.number, ALIGN);
    heft_free(al, l.is_kept, (size_t)heft_ix_tensors(&f->x) + 1, ALIGN);
    return heft_join_end(out, st, err);
}
