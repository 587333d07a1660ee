/* edit_tensors.c - tensors of a second file in place of tensors of the file.
 *
 * The index of the file is built again, with the second file's rows in place of those that are
 * replaced; names, ids and attributes stay.  New bytes that fit exactly where the old bytes lie
 * keep the offset of the old bytes, so that all other data stay where they are: a swap redirects
 * the range when extents are made. */
#include "base/out.h"
#include "base/sort.h"
#include "base/text.h"
#include "core/edit/edit.h"
#include "core/shards/shard_join.h"

static const char purpose[] = "to replace tensors";

/* ---- what may replace a tensor ---- */

enum { DESCRIPTION = 96 };

/* Write the type and the shape, "f32 [2, 3]", cut to fit. */
static const char *describe(char buf[DESCRIPTION], const heft_index *x, uint32_t t)
{
    heft_out o = { .buf = (uint8_t *)buf, .cap = DESCRIPTION - 1 };
    const heft_ix_tensor_row *row = heft_ix_row(x, t);
    heft_out_str(&o, heft_lit(heft_dtype_name(row->dtype)));
    heft_out_str(&o, heft_lit(" ["));
    for (uint32_t i = 0; i < row->rank; i++) {
        heft_out_str(&o, heft_lit(i ? ", " : ""));
        heft_out_decimal(&o, heft_ix_dims(x, t)[i], 1);
    }
    heft_out_u8(&o, ']');
    buf[o.len] = '\0';
    return buf;
}

static bool has_same_shape(const heft_index *x, uint32_t t, const heft_index *y, uint32_t u)
{
    const heft_ix_tensor_row *a = heft_ix_row(x, t), *b = heft_ix_row(y, u);
    return a->rank == b->rank && (!a->rank || !memcmp(heft_ix_dims(x, t), heft_ix_dims(y, u),
                                                      a->rank * sizeof(uint64_t)));
}

static bool is_one_dense_part(const heft_index *x, uint32_t t)
{
    return heft_ix_row(x, t)->part_count == 1 && heft_str_is(heft_ix_layout(x, t), "dense");
}

/* Return true if the new bytes can lie exactly where the old ones are. */
static bool fits(const heft_index *x, uint32_t t, const heft_index *y, uint32_t u)
{
    const heft_ix_part_row *old = heft_ix_part_row_at(x, heft_ix_row(x, t)->first_part);
    const heft_ix_part_row *new = heft_ix_part_row_at(y, heft_ix_row(y, u)->first_part);
    return heft_ix_is_plain(old) && heft_ix_is_plain(new) && old->stored == new->length;
}

static heft_status check_tensor(const heft_index *x, uint32_t t, const heft_index *y, uint32_t u,
                                bool may_differ, heft_error *err)
{
    char has[DESCRIPTION], gets[DESCRIPTION];
    heft_str name = heft_ix_name(x, t);
    bool is_same = heft_ix_row(x, t)->dtype == heft_ix_row(y, u)->dtype &&
                   has_same_shape(x, t, y, u);
    if (!is_one_dense_part(x, t) || !is_one_dense_part(y, u))
        return heft_error_plain(err, HEFT_E_UNSUPPORTED,
                                "tensor %q: only dense tensors of one part are replaced; convert "
                                "the file to change this one",
                                name);
    if (is_same || may_differ)
        return HEFT_OK;
    return heft_error_rule(err,
                           heft_error_plain(err, HEFT_E_ARGUMENT,
                                            "tensor %q is %s, and its replacement %s", name,
                                            describe(has, x, t), describe(gets, y, u)),
                           "heft/replacement-differs");
}

heft_status heft_edit_check_tensors(bool *bytes_differ, const heft_file *f, const heft_index *x,
                                    bool may_differ, heft_error *err)
{
    *bytes_differ = false;
    for (uint32_t u = 0; u < heft_ix_tensors(x); u++) {
        uint32_t t = heft_ix_find(&f->x, heft_ix_name(x, u));
        if (t == HEFT_NONE)
            return heft_error_rule(err,
                                   heft_error_plain(err, HEFT_E_NOTFOUND,
                                                    "no tensor named %q to replace",
                                                    heft_ix_name(x, u)),
                                   "heft/no-tensor");
        HEFT_TRY(check_tensor(&f->x, t, x, u, may_differ, err));
        *bytes_differ = *bytes_differ || !fits(&f->x, t, x, u);
    }
    return HEFT_OK;
}

/* Return an error if bytes that are replaced belong to another tensor, too. */
static heft_status check_shared(const heft_edit_tensors *e)
{
    const heft_index *x = &e->f->x;
    uint32_t count = 0, *order = heft_ix_order_in(e->mem, x, &count), longest = HEFT_NONE;
    uint64_t end = 0;
    heft_status st = order ? HEFT_OK : heft_error_no_memory(e->err, purpose);
    for (uint32_t i = 0; i < count && !st; i++) {
        const heft_ix_part_row *p = heft_ix_part_row_at(x, order[i]);
        uint32_t a = heft_ix_owner(x, order[i]);
        uint32_t b = p->offset < end ? heft_ix_owner(x, longest) : HEFT_NONE;
        bool is_replaced = a != HEFT_NONE && b != HEFT_NONE &&
                           (heft_ix_find(&e->added->x, heft_ix_name(x, a)) != HEFT_NONE ||
                            heft_ix_find(&e->added->x, heft_ix_name(x, b)) != HEFT_NONE);
        if (is_replaced)
            st =
                heft_error_plain(e->err, HEFT_E_UNSUPPORTED,
                                 "tensors %q and %q share their bytes, so that neither is replaced "
                                 "alone: convert the file first",
                                 heft_ix_name(x, b), heft_ix_name(x, a));
        if (p->offset + p->stored > end) {
            end = p->offset + p->stored;
            longest = order[i];
        }
    }
    if (order)
        heft_ix_order_free_in(e->mem, x, order);
    return st;
}

/* ---- the index ---- */

typedef struct rebuild {
    heft_edit_tensors *e;
    heft_file *in;
    uint32_t number; /* number of the second file */
} rebuild;

static heft_status add_attributes(heft_index *x, const heft_index *from, uint32_t t, uint32_t id)
{
    const heft_ix_attr_row *attrs = from->attrs.ptr;
    uint32_t i = heft_ix_row(from, t)->attrs, all = from->attrs.len;
    heft_status st = HEFT_OK;
    for (i = i ? i - 1 : all; !st && i < all && attrs[i].tensor == t;
         i = heft_value_next(&attrs[i].value, i))
        st = heft_ix_copy_value(x, from, i, id);
    return st;
}

static heft_status add_ids(heft_index *x, const heft_index *from, uint32_t t, uint32_t id)
{
    const uint8_t *base_id = heft_ix_base_id_at(from, t);
    uint8_t flags = heft_ix_row(from, t)->flags;
    if (base_id)
        HEFT_TRY(heft_ix_base_id(x, id, base_id));
    if (flags & HEFT_T_PARAM_ID)
        HEFT_TRY(heft_ix_param_id(x, id, ((const uint64_t *)from->param_ids.ptr)[t]));
    heft_ix_row(x, id)->flags = flags;
    return HEFT_OK;
}

static heft_status add_digest(heft_index *x, const heft_index *from, uint32_t part)
{
    uint32_t row = heft_ix_digest_find(from, part);
    if (row == HEFT_NONE)
        return HEFT_OK;
    heft_digest_row *to = heft_vec_push(&x->mem, &x->digests, sizeof *to);
    if (!to)
        return heft_ix_no_memory(x);
    *to = ((const heft_digest_row *)from->digests.ptr)[row];
    to->part = x->parts.len - 1;
    return HEFT_OK;
}

/* Add the part of tensor u of the second file: where the part of t was if it fits there. */
static heft_status add_part(rebuild *r, uint32_t t, uint32_t u, uint32_t id)
{
    heft_edit_tensors *e = r->e;
    heft_index *x = &r->in->x;
    const heft_index *from = &e->added->x;
    uint32_t part = heft_ix_row(from, u)->first_part;
    const heft_ix_part_row *new = heft_ix_part_row_at(from, part);
    const heft_ix_part_row *old = heft_ix_part_row_at(&e->f->x,
                                                      heft_ix_row(&e->f->x, t)->first_part);
    heft_range where = { heft_global_offset(r->number, new->offset), new->stored };
    if (!fits(&e->f->x, t, from, u))
        e->places_each = true;
    else if (new->stored) {
        e->swaps[e->swap_count++] =
            (heft_edit_swap){ { old->offset, old->stored }, where.offset, x->parts.len };
        where.offset = old->offset;
    } else {
        where.offset = old->offset;
    }
    HEFT_TRY(heft_ix_part(x, id, heft_ix_role(&e->f->x, old->role), new->dtype, where, new->length,
                          (heft_encoding) new->encoding));
    heft_ix_part_row_at(x, x->parts.len - 1)->flags = new->flags;
    HEFT_TRY(heft_ix_view_copy(x, id, from, part));
    return add_digest(x, from, part);
}

static heft_status add_instead(void *ctx, uint32_t t)
{
    rebuild *r = ctx;
    heft_index *x = &r->in->x;
    const heft_index *f = &r->e->f->x, *from = &r->e->added->x;
    uint32_t u = heft_ix_find(from, heft_ix_name(f, t)), id;
    const heft_ix_tensor_row *row = heft_ix_row(from, u);
    uint64_t *dims;
    HEFT_TRY(heft_ix_tensor(x, heft_ix_name(f, t), row->dtype, row->rank, &dims, &id));
    if (row->rank)
        memcpy(dims, heft_ix_dims(from, u), row->rank * sizeof *dims);
    HEFT_TRY(heft_ix_set_layout(x, id, heft_ix_layout(from, u)));
    HEFT_TRY(add_part(r, t, u, id));
    HEFT_TRY(add_ids(x, f, t, id));
    return add_attributes(x, f, t, id);
}

/* Empty the columns about tensors, which heft_ix_merge_with() fills again. */
static void clear_tensors(heft_index *x)
{
    heft_vec *const columns[] = { &x->tensors,  &x->hashes,   &x->parts,     &x->dims,
                                  &x->attrs,    &x->notes,    &x->checksums, &x->digests,
                                  &x->views,    &x->strides,  &x->omitted,   &x->tensor_checksums,
                                  &x->base_ids, &x->param_ids };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        columns[i]->len = 0;
    x->left_out = x->left_out_unread = 0;
    x->has_name_table = false;
}

/* Remove the checksums of replaced tensors: merged checksums have the order of those of f. */
static void drop_checksums(heft_index *x, const heft_index *f)
{
    heft_stored_checksum *to = x->checksums.ptr;
    const heft_stored_checksum *old = f->checksums.ptr;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->checksums.len; i++)
        if (old[i].tensor == HEFT_NONE || to[i].tensor != HEFT_NONE)
            to[kept++] = to[i];
    x->checksums.len = kept;
}

static bool lies_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_edit_swap *swaps = ctx;
    return swaps[a].at.offset < swaps[b].at.offset;
}

static heft_status sort_swaps(heft_edit_tensors *e)
{
    uint32_t n = e->swap_count;
    size_t bytes = 2 * ((size_t)n + 1) * sizeof(uint32_t);
    uint32_t *order = heft_mem_alloc(e->mem, bytes);
    heft_edit_swap *sorted = heft_mem_alloc(e->mem, ((size_t)e->room + 1) * sizeof *sorted);
    heft_status st = order && sorted ? HEFT_OK : heft_error_no_memory(e->err, purpose);
    for (uint32_t i = 0; i < n && !st; i++)
        order[i] = i;
    if (!st) {
        heft_sort(order, order + n, n, lies_before, e->swaps);
        for (uint32_t i = 0; i < n; i++)
            sorted[i] = e->swaps[order[i]];
        heft_edit_swap *unsorted = e->swaps;
        e->swaps = sorted;
        sorted = unsorted;
    }
    heft_mem_free(e->mem, sorted, ((size_t)e->room + 1) * sizeof *sorted);
    heft_mem_free(e->mem, order, bytes);
    return st;
}

static heft_status build(rebuild *r, uint8_t *is_kept)
{
    const heft_file *f = r->e->f;
    heft_index *x = &r->in->x;
    for (uint32_t t = 0; t < heft_ix_tensors(&f->x); t++)
        is_kept[t] = heft_ix_find(&r->e->added->x, heft_ix_name(&f->x, t)) == HEFT_NONE;
    clear_tensors(x);
    x->err = r->e->err;
    heft_status st = heft_ix_merge_with(x, &f->x, 0, (heft_str){ NULL, 0 }, is_kept, add_instead,
                                        r);
    if (!st)
        drop_checksums(x, &f->x);
    if (!st)
        st = heft_ix_build_name_table(x);
    x->err = NULL;
    return st ? st : sort_swaps(r->e);
}

heft_status heft_edit_put_tensors(heft_edit_tensors *e, heft_file *in)
{
    rebuild r = { .e = e, .in = in };
    size_t bytes = (size_t)heft_ix_tensors(&e->f->x) + 1;
    e->room = heft_ix_tensors(&e->added->x);
    HEFT_TRY(check_shared(e));
    HEFT_TRY(heft_join_second(in, heft_file_size(e->added), e->added->source, &r.number, e->err));
    uint8_t *is_kept = heft_mem_alloc(e->mem, bytes);
    e->swaps = heft_mem_alloc(e->mem, ((size_t)e->room + 1) * sizeof *e->swaps);
    heft_status st = is_kept && e->swaps ? HEFT_OK : heft_error_no_memory(e->err, purpose);
    heft_file_enter(in);
    if (!st)
        st = build(&r, is_kept);
    st = heft_file_leave_after(in, st, e->err);
    heft_mem_free(e->mem, is_kept, bytes);
    return st;
}

void heft_edit_tensors_free(heft_edit_tensors *e)
{
    if (e->swaps)
        heft_mem_free(e->mem, e->swaps, ((size_t)e->room + 1) * sizeof *e->swaps);
}
