/* map_ties.c - tied tensors: when the statements of a map hold, and whether two results are one. */
#include "map/map_ties.h"

#include "base/error.h"
#include "base/text.h"
#include "map/map_file.h"

bool heft_map_tie_holds(const heft_map_tie *t, const heft_map_numbers *numbers, uint32_t side,
                        bool is_untie)
{
    return t->side == side && t->is_untie == is_untie && heft_map_holds(numbers, &t->condition);
}

/* A result: gathered at `start` of a source, or a tensor that the input keeps. */
typedef struct output {
    heft_source *source; /* NULL: part `part` of f */
    const heft_file *f;
    uint64_t start, bytes;
    uint32_t part;
    heft_dtype dtype;
    uint32_t rank;
    const uint64_t *dims;
} output;

static bool is_same_shape(const output *a, const output *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static heft_status read_bytes(const output *o, uint64_t from, uint8_t *to, size_t len,
                              heft_error *err)
{
    return o->source ? o->source->ops->read(o->source, o->start + from, to, len, err)
                     : heft_part_read(to, o->f, o->part, from, len, err);
}

/* Set *same if both have one type, shape and content. */
static heft_status compare(bool *same, const output *a, const output *b, heft_memory *mem,
                           heft_error *err)
{
    enum { CHUNK = 256 << 10 };
    *same = is_same_shape(a, b);
    if (!*same || (!a->source && !b->source && a->part == b->part))
        return HEFT_OK;
    uint8_t *buf = heft_mem_alloc(mem, (size_t)2 * CHUNK);
    heft_status st = buf ? HEFT_OK : heft_error_no_memory(err, "to compare tied tensors");
    for (uint64_t at = 0; !st && *same && at < a->bytes; at += CHUNK) {
        size_t n = a->bytes - at < CHUNK ? (size_t)(a->bytes - at) : CHUNK;
        st = read_bytes(a, at, buf, n, err);
        if (!st)
            st = read_bytes(b, at, buf + CHUNK, n, err);
        *same = !st && memcmp(buf, buf + CHUNK, n) == 0;
    }
    if (buf)
        heft_mem_free(mem, buf, (size_t)2 * CHUNK);
    return st;
}

/* ---- results by name ---- */

typedef struct output_ref { /* a result by its name */
    output of;
    uint32_t row, tensor; /* one of them; the other is HEFT_NONE */
} output_ref;

static bool find_row(const heft_map_run *a, heft_str name, output_ref *out)
{
    const heft_map_row *rows = a->rows.ptr;
    for (uint32_t i = 0; i < a->rows.len; i++) {
        const heft_map_result *r = &a->results[i];
        if (!heft_str_eq(rows[i].name, name))
            continue;
        heft_source *source = a->out->opened_shards[a->out->opened_shard_count - 1].source;
        *out = (output_ref){ { .source = source,
                               .start = r->start,
                               .bytes = r->bytes,
                               .dtype = r->as,
                               .rank = rows[i].rank,
                               .dims = rows[i].dims },
                             i,
                             HEFT_NONE };
        return true;
    }
    return false;
}

/* Find a dense tensor that keeps its bytes. */
static bool find_kept(const heft_map_run *a, heft_str name, output_ref *out)
{
    const heft_index *x = &a->f->x;
    for (uint32_t i = 0; i < heft_ix_tensors(x); i++) {
        const heft_ix_tensor_row *row = heft_ix_row(x, i);
        heft_str now = a->names[i].rule == HEFT_NONE ? heft_ix_name(x, i) : a->names[i].name;
        if (!a->matches.is_kept[i] || !heft_str_eq(now, name))
            continue;
        if (row->part_count != 1 || row->layout != HEFT_DENSE)
            return false;
        *out = (output_ref){ { .f = a->f,
                               .bytes = heft_ix_part_row_at(x, row->first_part)->length,
                               .part = row->first_part,
                               .dtype = row->dtype,
                               .rank = row->rank,
                               .dims = heft_ix_dims(x, i) },
                             HEFT_NONE,
                             i };
        return true;
    }
    return false;
}

static bool find_output(const heft_map_run *a, heft_str name, output_ref *out)
{
    return find_row(a, name, out) || find_kept(a, name, out);
}

/* Leave out the second of two results with the same content. */
static heft_status tie(heft_map_run *a, const heft_map_tie *t)
{
    output_ref first, second;
    bool same;
    if (!find_output(a, t->first, &first) || !find_output(a, t->second, &second))
        return HEFT_OK;
    HEFT_TRY(compare(&same, &first.of, &second.of, &a->matches.mem, a->err));
    if (same && second.row != HEFT_NONE)
        ((heft_map_row *)a->rows.ptr)[second.row].is_left_out = true;
    else if (same)
        a->matches.is_kept[second.tensor] = 0;
    if (a->opt.on_tied)
        a->opt.on_tied(a->opt.ctx, t->second, t->first, same);
    return HEFT_OK;
}

heft_status heft_map_tie_all(heft_map_run *a)
{
    heft_status st = HEFT_OK;
    for (uint32_t i = 0; i < a->m->ties.len && !st; i++) {
        const heft_map_tie *t = HEFT_MAP_AT(a->m, ties, heft_map_tie, i);
        if (heft_map_tie_holds(t, &a->numbers, !a->matches.side, false))
            st = tie(a, t);
    }
    return st;
}
