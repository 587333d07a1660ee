/* web_columns.c - copies the facts of all tensors into arrays, a chunk of tensors at a time.
 *
 * JavaScript has no access to the index itself.  A chunk passes through memory that JavaScript
 * allocates once, so that the arrays of all tensors exist in JavaScript only. */
#include "heft_web.h"

/* A chunk: pointers to arrays of JavaScript's making, and the state of the copy.  model.mjs knows
 * the order of the members. */
typedef struct columns {
    double *elements, *nbytes, *offsets, *stored, *dims;
    uint32_t *name_ends, *dim_ends, *shards;
    uint16_t *dtypes;
    uint8_t *ranks, *names;
    uint32_t max_tensors, max_names, max_dims; /* capacity of the arrays */
    uint32_t next, name_end, dim_end;          /* the next tensor; bytes and dimensions before it */
} columns;

/* Number 0: bytes of all names; 1: dimensions of all tensors; 2: bytes of the longest name;
 * 3: the highest rank. */
WEB_EXPORT(columns_size) void columns_size(const web_model *m)
{
    const heft_file *f = m->file;
    size_t names = 0, dims = 0, longest = 0, rank = 0;
    for (uint32_t i = 0, count = heft_tensor_count(f); i < count; i++) {
        heft_tensor t = heft_tensor_at(f, i);
        names += t.name.len;
        dims += t.rank;
        longest = t.name.len > longest ? t.name.len : longest;
        rank = t.rank > rank ? t.rank : rank;
    }
    const double numbers[] = { (double)names, (double)dims, (double)longest, (double)rank };
    memcpy(web_result.number, numbers, sizeof numbers);
}

static void fill_parts(const columns *c, uint32_t at, const heft_file *f, const heft_tensor *t)
{
    double stored = 0, offset = __builtin_nan("");
    uint32_t shard = 0;
    for (uint32_t k = 0; k < t->part_count; k++) {
        heft_part p = heft_part_at(f, t->first_part + k);
        stored += (double)p.stored;
        offset = k ? offset : (double)p.offset;
        shard = k ? shard : p.shard;
    }
    c->offsets[at] = offset;
    c->shards[at] = shard;
    c->stored[at] = stored;
}

/* Copy the next tensors, as many as the arrays hold; return the number of tensors copied. */
WEB_EXPORT(columns_fill) uint32_t columns_fill(const web_model *m, columns *c)
{
    const heft_file *f = m->file;
    uint32_t count = heft_tensor_count(f), names = 0, dims = 0, at = 0;
    for (; at < c->max_tensors && c->next + at < count; at++) {
        heft_tensor t = heft_tensor_at(f, c->next + at);
        double elements = 1;
        if (t.name.len > c->max_names - names || t.rank > c->max_dims - dims)
            break;
        for (uint32_t d = 0; d < t.rank; d++) {
            c->dims[dims++] = (double)t.dims[d];
            elements *= (double)t.dims[d];
        }
        memcpy(c->names + names, t.name.ptr, t.name.len);
        names += (uint32_t)t.name.len;
        c->name_ends[at] = c->name_end + names;
        c->dim_ends[at] = c->dim_end + dims;
        c->dtypes[at] = t.dtype;
        c->ranks[at] = (uint8_t)(t.rank < UINT8_MAX ? t.rank : UINT8_MAX);
        c->elements[at] = elements;
        c->nbytes[at] = web_number(heft_tensor_bytes(f, c->next + at));
        fill_parts(c, at, f, &t);
    }
    c->next += at;
    c->name_end += names;
    c->dim_end += dims;
    return at;
}
