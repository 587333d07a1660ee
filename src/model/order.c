/* order.c - orders of parts, tensors and values, and parts and tensors sorted by offset. */
#include "base/compiler.h"
#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "model/index.h"

/* ---- orders ---- */

bool heft_ix_name_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_name(ctx, a), heft_ix_name(ctx, b)) < 0;
}

bool heft_ix_role_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_role(ctx, heft_ix_part_row_at(ctx, a)->role),
                          heft_ix_role(ctx, heft_ix_part_row_at(ctx, b)->role)) < 0;
}

bool heft_ix_key_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(heft_ix_value(ctx, a)->key, heft_ix_value(ctx, b)->key) < 0;
}

/* ---- a sorted list of parts ---- */

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
    uint32_t *ids = heft_mem_alloc(m, order_bytes(x));
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
    heft_mem_free(m, ids, order_bytes(x));
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

heft_status heft_ix_refuse_overlap(heft_index *x, const uint32_t *order, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const heft_ix_part_row *a = heft_ix_part_row_at(x, order[i - 1]);
        const heft_ix_part_row *b = heft_ix_part_row_at(x, order[i]);
        if (b->offset < a->offset + a->length)
            HEFT_TRY(heft_ix_forgive(x,
                                     heft_error_set(x->err, HEFT_E_FORMAT, b->offset,
                                                    "tensors %q and %q: their data overlap",
                                                    heft_ix_name(x, order[i - 1]),
                                                    heft_ix_name(x, order[i])),
                                     "overlap"));
    }
    return HEFT_OK;
}

heft_status heft_ix_note_overlaps(heft_index *x, const char *rule, const char *text, bool may_share)
{
    uint32_t *order = NULL, count;
    heft_range reach = { 0, 0 }; /* range with the greatest end so far */
    heft_status st = heft_ix_order(x, &order, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        const heft_ix_part_row *part = heft_ix_part_row_at(x, order[i]);
        bool is_same = part->offset == reach.offset && part->stored == reach.length;
        if (order[i] >= x->parts.len)
            continue; /* part of the file, not of a tensor */
        if (part->offset < reach.offset + reach.length && !(is_same && may_share))
            heft_ix_note(x, HEFT_WARNING, rule, part->offset, order[i], text);
        if (part->offset + part->stored > reach.offset + reach.length)
            reach = (heft_range){ part->offset, part->stored };
    }
    heft_ix_order_free(x, order);
    return st;
}

/* ---- sorting the columns ---- */

enum { DIGIT = 8, DIGITS = 1 << DIGIT }; /* as many write positions as fit into the cache */
enum { AHEAD = 16 };                     /* elements that are prefetched */

/* Return the sort key: the offset, and 0 in the lowest bit for an empty part.  Tensor i has part
 * i. */
static uint64_t key_of(const heft_index *x, uint32_t tensor)
{
    const heft_ix_part_row *part = (const heft_ix_part_row *)x->parts.ptr + tensor;
    return part->offset << 1 | (part->stored > 0);
}

static bool below(const void *ctx, uint32_t a, uint32_t b)
{
    return key_of(ctx, a) < key_of(ctx, b);
}

/* Return true if the keys ascend; set *vary to the bits in which they differ. */
static bool ascends(const heft_index *x, uint64_t *vary)
{
    bool ascends = true;
    uint64_t first = x->tensors.len ? key_of(x, 0) : 0, before = first;
    *vary = 0;
    for (uint32_t i = 0; i < x->tensors.len; i++) {
        uint64_t key = key_of(x, i);
        ascends = ascends && before <= key;
        *vary |= key ^ first;
        before = key;
    }
    return ascends;
}

static unsigned bits_of(uint64_t v)
{
    unsigned n = 0;
    for (; v; v >>= 1)
        n++;
    return n;
}

/* Distribute words from a to b by the digit at bit `shift`. */
static void distribute(uint64_t *b, const uint64_t *a, uint32_t n, unsigned shift)
{
    uint32_t at[DIGITS] = { 0 }, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        at[a[i] >> shift & (DIGITS - 1)]++;
    for (uint32_t d = 0; d < DIGITS; d++) {
        uint32_t count = at[d];
        at[d] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        b[at[a[i] >> shift & (DIGITS - 1)]++] = a[i];
}

/* Radix sort of words that hold bits [low, low + key_bits) of a key and the number of a tensor. */
static void sort_words(uint32_t *order, uint64_t *words, const heft_index *x, unsigned low,
                       unsigned key_bits, unsigned id_bits)
{
    uint32_t n = x->tensors.len;
    uint64_t *from = words, *to = words + n, most = (UINT64_C(1) << key_bits) - 1;
    for (uint32_t i = 0; i < n; i++)
        from[i] = (key_of(x, i) >> low & most) << id_bits | i;
    for (unsigned shift = id_bits; shift < id_bits + key_bits; shift += DIGIT) {
        distribute(to, from, n, shift);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint32_t)(from[i] & ((UINT64_C(1) << id_bits) - 1));
}

/* `words` has two words per tensor. */
static void sort_places(uint32_t *order, uint64_t *words, const heft_index *x, uint64_t vary)
{
    uint32_t n = x->tensors.len;
    unsigned low = bits_of((vary & (0 - vary)) - 1), id_bits = bits_of(n);
    unsigned key_bits = bits_of(vary >> low); /* at least 1: the keys differ */
    if (key_bits + id_bits <= 64) {
        sort_words(order, words, x, low, key_bits, id_bits);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    heft_sort(order, (uint32_t *)(void *)words, n, below, x);
}

/* Renumber the tensors of attributes and notes. */
static void renumber(heft_index *x, const uint32_t *order, uint32_t *number)
{
    heft_ix_attr_row *attrs = x->attrs.ptr;
    heft_note *notes = x->notes.ptr;
    if (!x->attrs.len && !x->notes.len)
        return;
    for (uint32_t i = 0; i < x->tensors.len; i++)
        number[order[i]] = i;
    for (uint32_t i = 0; i < x->attrs.len; i++)
        attrs[i].tensor = number[attrs[i].tensor];
    for (uint32_t i = 0; i < x->notes.len; i++)
        if (notes[i].tensor != HEFT_NONE)
            notes[i].tensor = number[notes[i].tensor];
}

/* Memory of a former column, reused because the first touch of new pages costs more than the
 * copy. */
typedef struct spare {
    void *ptr;
    size_t bytes;
} spare;

static bool make_spare(heft_index *x, spare *s, size_t bytes)
{
    void *p = heft_mem_resize(&x->mem, s->ptr, s->bytes, bytes);
    if (p)
        *s = (spare){ p, bytes };
    return p;
}

/* Permutation of a column: element i becomes the former element order[i], in parallel ranges. */
typedef struct gathering {
    const char *from;
    char *to;
    const uint32_t *order;
    size_t elem;     /* bytes per element, or TENSOR for rows of tensors, whose first_part is set */
    uint32_t n, had; /* columns of ids end at the last tensor with an id: zeros follow */
} gathering;

enum {
    SHARES = 8,
    HASH = 4,
    PARAM_ID = 8,
    BASE_ID = 16,
    PART = sizeof(heft_ix_part_row),
    TENSOR = 0
};

static void gather_tensors(const gathering *g, uint32_t from, uint32_t end)
{
    const heft_ix_tensor_row *rows = (const heft_ix_tensor_row *)(const void *)g->from;
    heft_ix_tensor_row *to = (heft_ix_tensor_row *)(void *)g->to;
    for (uint32_t i = from; i < end; i++) {
        if (end - i > AHEAD)
            heft_prefetch_line(&rows[g->order[i + AHEAD]]);
        to[i] = rows[g->order[i]];
        to[i].first_part = i;
    }
}

static inline void gather_elements(const gathering *g, uint32_t from, uint32_t end, size_t elem)
{
    for (uint32_t i = from; i < end; i++) {
        char *to = g->to + i * elem;
        if (end - i > AHEAD)
            heft_prefetch_line(g->from + g->order[i + AHEAD] * elem);
        if (g->order[i] < g->had)
            memcpy(to, g->from + g->order[i] * elem, elem);
        else
            memset(to, 0, elem);
    }
}

static void gather_share(void *arg, size_t share)
{
    const gathering *g = arg;
    uint32_t from = (uint32_t)((uint64_t)g->n * share / SHARES);
    uint32_t end = (uint32_t)((uint64_t)g->n * (share + 1) / SHARES);
    switch (g->elem) { /* constant sizes compile to a few instructions */
    case HASH:
        gather_elements(g, from, end, HASH);
        break;
    case PARAM_ID:
        gather_elements(g, from, end, PARAM_ID);
        break;
    case BASE_ID:
        gather_elements(g, from, end, BASE_ID);
        break;
    case PART:
        gather_elements(g, from, end, PART);
        break;
    default:
        gather_tensors(g, from, end);
    }
}

static bool gather(heft_index *x, heft_vec *column, size_t kind, const uint32_t *order, spare *s)
{
    size_t elem = kind == TENSOR ? sizeof(heft_ix_tensor_row) : kind;
    uint32_t n = x->tensors.len;
    if (!column->len)
        return true;
    if (!make_spare(x, s, n * elem))
        return false;
    gathering g = { column->ptr, s->ptr, order, kind, n, column->len };
    heft_ix_run(x, SHARES, gather_share, &g);
    /* Exchange the column's memory and the spare memory. */
    spare old = { column->ptr, column->cap * elem };
    *column = (heft_vec){ s->ptr, n, n };
    *s = old;
    return true;
}

/* ---- a lean build: columns are permuted in place ---- */

static void permute(void *rows, size_t elem, const uint32_t *order, uint32_t *left, uint32_t n)
{
    uint8_t *base = rows, first[sizeof(heft_ix_part_row)];
    memcpy(left, order, n * sizeof *left);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = i;
        memcpy(first, base + i * elem, elem);
        while (left[to] != i) { /* follow a cycle of the permutation */
            uint32_t from = left[to];
            memcpy(base + to * elem, base + from * elem, elem);
            left[to] = to;
            to = from;
        }
        memcpy(base + to * elem, first, elem);
        left[to] = to;
    }
}

/* Extend a column of ids by zeros; the column ends at the last tensor with an id. */
static bool fill_column(heft_index *x, heft_vec *column, size_t elem)
{
    uint32_t n = x->tensors.len, had = column->len;
    if (!had || had == n)
        return true;
    if (!heft_vec_reserve(&x->mem, column, n - had, elem))
        return false;
    memset((char *)column->ptr + had * elem, 0, (n - had) * elem);
    column->len = n;
    return true;
}

static heft_status sort_in_place(heft_index *x)
{
    const struct {
        heft_vec *column;
        size_t elem;
    } columns[] = { { &x->tensors, sizeof(heft_ix_tensor_row) },
                    { &x->parts, PART },
                    { &x->hashes, HASH },
                    { &x->base_ids, BASE_ID },
                    { &x->param_ids, PARAM_ID } };
    uint32_t n = x->tensors.len;
    size_t bytes = 2 * (size_t)n * sizeof(uint32_t);
    uint32_t *order = NULL;
    if (fill_column(x, &x->base_ids, BASE_ID) && fill_column(x, &x->param_ids, PARAM_ID))
        order = heft_mem_alloc(&x->mem, bytes);
    if (!order)
        return no_memory(x);
    heft_sort_numbers(order, n, below, x);
    renumber(x, order, order + n);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (columns[i].column->len)
            permute(columns[i].column->ptr, columns[i].elem, order, order + n, n);
    for (uint32_t i = 0; i < n; i++)
        heft_ix_row(x, i)->first_part = i;
    heft_mem_free(&x->mem, order, bytes);
    return HEFT_OK;
}

heft_status heft_ix_sort(heft_index *x)
{
    size_t n = x->tensors.len, bytes = n * sizeof(uint32_t);
    spare words = { NULL, 0 };
    uint64_t vary;
    if (ascends(x, &vary))
        return HEFT_OK;
    if (HEFT_IS_LEAN)
        return sort_in_place(x);
    uint32_t *order = heft_mem_alloc(&x->mem, bytes);
    bool room = order && make_spare(x, &words, n * 2 * sizeof(uint64_t));
    if (room) {
        sort_places(order, words.ptr, x, vary);
        renumber(x, order, words.ptr);
        /* Wide columns first: their memory is large enough for the next column. */
        room = gather(x, &x->tensors, TENSOR, order, &words) &&
               gather(x, &x->parts, PART, order, &words) &&
               gather(x, &x->hashes, HASH, order, &words) &&
               gather(x, &x->base_ids, BASE_ID, order, &words) &&
               gather(x, &x->param_ids, PARAM_ID, order, &words);
    }
    heft_mem_free(&x->mem, words.ptr, words.bytes);
    heft_mem_free(&x->mem, order, bytes);
    return room ? HEFT_OK : no_memory(x);
}
