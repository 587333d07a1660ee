/* order.c - parts and tensors by where they lie in the file. */
#include "base/error.h"
#include "base/sort.h"
#include "model/index.h"

/* ---- an order beside the columns ---- */

static bool lies_before(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ix_part_row *p = heft_ix_part_row_at(ctx, a), *q = heft_ix_part_row_at(ctx, b);
    return p->offset != q->offset ? p->offset < q->offset : p->stored < q->stored;
}

static size_t order_bytes(const heft_index *x)
{
    return (((size_t)x->parts.len + x->model_parts.len) * 2 + 1) * sizeof(uint32_t);
}

uint32_t *heft_ix_order_in(heft_memory *m, const heft_index *x, uint32_t *count)
{
    uint32_t all = x->parts.len + x->model_parts.len, n = 0;
    uint32_t *ids = heft_mem_resize(m, NULL, 0, order_bytes(x));
    if (!ids)
        return NULL;
    for (uint32_t i = 0; i < all; i++)
        if (heft_ix_part_row_at(x, i)->stored)
            ids[n++] = i;
    heft_sort(ids, ids + all, n, lies_before, x);
    *count = n;
    return ids;
}

void heft_ix_order_free_in(heft_memory *m, const heft_index *x, uint32_t *ids)
{
    if (ids)
        heft_mem_resize(m, ids, order_bytes(x), 0);
}

static heft_status no_memory(heft_index *x)
{
    return heft_error_plain(x->err, HEFT_E_NOMEM, "no memory to sort %U tensors",
                            (uint64_t)x->tensors.len);
}

heft_status heft_ix_order(heft_index *x, uint32_t **out, uint32_t *count)
{
    *out = heft_ix_order_in(&x->mem, x, count);
    return *out ? HEFT_OK : no_memory(x);
}

void heft_ix_order_free(heft_index *x, uint32_t *ids)
{
    heft_ix_order_free_in(&x->mem, x, ids);
}

/* ---- the columns in another order ---- */

typedef struct place {
    uint64_t key;
    uint32_t id;
} place;

enum { DIGIT = 10, DIGITS = 1 << DIGIT }; /* counters of 4 KiB: they are on the stack */

/* Offset, which is no larger than a file, and whether there are bytes. */
static uint64_t key_of(const heft_index *x, uint32_t tensor)
{
    const heft_ix_part_row *part = heft_ix_part_row_at(x, heft_ix_row(x, tensor)->first_part);
    return part->offset << 1 | (part->stored > 0);
}

static bool ascends(const heft_index *x)
{
    for (uint32_t i = 1; i < x->tensors.len; i++)
        if (key_of(x, i) < key_of(x, i - 1))
            return false;
    return true;
}

/* From a to b by the digit of the key that begins at bit `shift`. */
static void distribute(place *b, const place *a, uint32_t n, unsigned shift)
{
    uint32_t at[DIGITS] = { 0 }, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        at[a[i].key >> shift & (DIGITS - 1)]++;
    for (uint32_t d = 0; d < DIGITS; d++) {
        uint32_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        b[at[a[i].key >> shift & (DIGITS - 1)]++] = a[i];
}

/* Fills both halves of places and returns the one that is sorted. */
static const place *sort_places(place *places, const heft_index *x)
{
    uint32_t n = x->tensors.len;
    place *from = places, *to = places + n;
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++) {
        from[i] = (place){ key_of(x, i), i };
        all |= from[i].key;
    }
    for (unsigned shift = 0; shift < 64 && all >> shift; shift += DIGIT) {
        distribute(to, from, n, shift);
        place *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Attributes and notes name tensors by number. */
static void renumber(heft_index *x, const uint32_t *order, uint32_t *number)
{
    heft_ix_attr_row *attrs = x->attrs.ptr;
    heft_note *notes = x->notes.ptr;
    for (uint32_t i = 0; i < x->tensors.len; i++)
        number[order[i]] = i;
    for (uint32_t i = 0; i < x->attrs.len; i++)
        attrs[i].tensor = number[attrs[i].tensor];
    for (uint32_t i = 0; i < x->notes.len; i++)
        if (notes[i].tensor != HEFT_NONE)
            notes[i].tensor = number[notes[i].tensor];
}

/* Element i of a column becomes what element order[i] was. */
static inline void gather(heft_vec *column, size_t elem, const uint32_t *order, char *room)
{
    for (uint32_t i = 0; i < column->len; i++)
        memcpy(room + i * elem, (const char *)column->ptr + order[i] * elem, elem);
    if (column->len)
        memcpy(column->ptr, room, column->len * elem);
}

/* Columns of ids end with the last tensor that has one. */
static bool complete_ids(heft_index *x, heft_vec *ids, size_t elem)
{
    uint32_t lacking = ids->len ? x->tensors.len - ids->len : 0;
    if (!lacking)
        return true;
    if (!heft_vec_reserve(&x->mem, ids, lacking, elem))
        return false;
    memset((char *)ids->ptr + ids->len * elem, 0, lacking * elem);
    ids->len += lacking;
    return true;
}

heft_status heft_ix_sort(heft_index *x)
{
    enum { BASE_ID = 16, PARAM_ID = 8, ROW = sizeof(heft_ix_tensor_row) }; /* the widest column */
    size_t n = x->tensors.len, bytes = n * (sizeof(place) + ROW);
    if (ascends(x))
        return HEFT_OK;
    char *block = NULL;
    if (complete_ids(x, &x->base_ids, BASE_ID) && complete_ids(x, &x->param_ids, PARAM_ID))
        block = heft_mem_resize(&x->mem, NULL, 0, bytes);
    if (!block)
        return no_memory(x);
    /* The order takes the place of what it is made of; there is room for a column behind it. */
    const place *sorted = sort_places((place *)(void *)block, x);
    uint32_t *order = (uint32_t *)(void *)block;
    char *room = block + n * sizeof(place);
    for (size_t i = 0; i < n; i++)
        order[i] = sorted[i].id;
    renumber(x, order, (uint32_t *)(void *)room);
    gather(&x->tensors, ROW, order, room);
    gather(&x->parts, sizeof(heft_ix_part_row), order, room);
    gather(&x->base_ids, BASE_ID, order, room);
    gather(&x->param_ids, PARAM_ID, order, room);
    for (uint32_t i = 0; i < n; i++)
        heft_ix_row(x, i)->first_part = i;
    heft_mem_resize(&x->mem, block, bytes, 0);
    return HEFT_OK;
}
