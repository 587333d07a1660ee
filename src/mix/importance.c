/* importance.c - reads the importance of columns, as llama-imatrix writes it.
 *
 * GGUF, of general.type "imatrix": for each weight NAME the tensors NAME.in_sum2, for each matrix
 * the sums of the squares that met each column, and NAME.counts, for each matrix how many.
 * imatrix.dat, little-endian i32: the number of entries, then for each the length of the name, the
 * name, calls, n, and n f32, which are means times calls; then perhaps the number of chunks, the
 * length of a name, and the name of the text that was used. */
#include <heft/heft_ext.h>
#include <heft/mix.h>

#include "base/arena.h"
#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/sort.h"
#include "core/read/file.h"
#include "model/float.h"

static const char purpose[] = "for an imatrix";

typedef struct entry {
    heft_str name;
    const float *values;
    uint64_t count;
} entry;

struct heft_importance {
    heft_memory mem;
    heft_arena arena;
    heft_vec entries; /* entry, sorted by name once all are read */
    heft_str dataset;
    uint32_t chunks;
    uint64_t trailing; /* bytes after the end of an imatrix.dat */
};

static const entry *at(const heft_importance *m, uint32_t i)
{
    return (const entry *)m->entries.ptr + i;
}

/* ---- entries ---- */

/* Return true if a number can be an importance: not NaN, not infinite, not below 0.  Minus zero
 * is 0. */
static bool is_importance(float v)
{
    return v >= 0 && v <= 3.402823466e+38F;
}

static heft_status check_values(const entry *e, heft_error *err)
{
    for (uint64_t i = 0; i < e->count; i++)
        if (!is_importance(e->values[i]))
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "the imatrix has a number for column %U of %q that is NaN, "
                                    "infinite or below 0",
                                    i, e->name);
    return HEFT_OK;
}

/* Add an entry with memory for its values. */
static heft_status add(heft_importance *m, heft_str name, uint64_t count, float **values,
                       heft_error *err)
{
    entry e = { .name = heft_arena_copy(&m->arena, name), .count = count };
    *values = count <= SIZE_MAX / sizeof(float)
                  ? heft_arena_alloc(&m->arena, (size_t)count * sizeof(float), sizeof(float))
                  : NULL;
    e.values = *values;
    if (!e.name.ptr || !*values || !heft_vec_add(&m->mem, &m->entries, &e, sizeof e))
        return heft_error_no_memory(err, purpose);
    return HEFT_OK;
}

static bool is_before(const void *ctx, uint32_t a, uint32_t b)
{
    return heft_str_order(((const entry *)ctx + a)->name, ((const entry *)ctx + b)->name) < 0;
}

/* Sort the entries by name; a name must not come twice. */
static heft_status sort_entries(heft_importance *m, heft_error *err)
{
    uint32_t n = m->entries.len;
    entry *sorted = heft_arena_alloc(&m->arena, n * sizeof *sorted + 1, sizeof(void *));
    uint32_t *ids = heft_arena_alloc(&m->arena, 2 * (size_t)n * sizeof *ids + 1, sizeof *ids);
    if (!sorted || !ids)
        return heft_error_no_memory(err, purpose);
    heft_sort_numbers(ids, n, is_before, m->entries.ptr);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = *at(m, ids[i]);
        if (i && heft_str_eq(sorted[i].name, sorted[i - 1].name))
            return heft_error_plain(err, HEFT_E_FORMAT, "the imatrix has two entries for %q",
                                    sorted[i].name);
    }
    if (n)
        memcpy(m->entries.ptr, sorted, n * sizeof *sorted);
    return HEFT_OK;
}

/* ---- GGUF ---- */

/* Return the name before the suffix; of another name, an empty text. */
static heft_str stem_of(heft_str name, const char *suffix)
{
    size_t len = heft_lit(suffix).len;
    return heft_str_ends(name, suffix) ? (heft_str){ name.ptr, name.len - len } : heft_lit("");
}

/* Return how many matrices the sums are of: GGUF does not state a last dimension of 1. */
static uint64_t matrices_of(const heft_tensor *sums)
{
    return sums->rank == 2 ? sums->dims[0] : 1;
}

static bool is_plain_f32(const heft_tensor *t)
{
    return t->dtype == HEFT_F32 && t->layout == HEFT_DENSE && t->part_count == 1;
}

static heft_status check_pair(const heft_tensor *sums, const heft_tensor *counts, heft_error *err)
{
    uint64_t numbers = 0;
    bool is_matrix = is_plain_f32(sums) && (sums->rank == 1 || sums->rank == 2);
    bool has_counts = is_plain_f32(counts) && heft_product(&numbers, counts->dims, counts->rank);
    if (!is_matrix || !has_counts || numbers != matrices_of(sums))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "the imatrix is damaged: %q and %q must be f32, a row of sums for "
                                "each matrix and a number for each row",
                                sums->name, counts->name);
    return HEFT_OK;
}

/* Turn the sums of a matrix into means; a matrix that met no text counts evenly. */
static heft_status divide(float *values, uint64_t columns, float count, heft_str name,
                          heft_error *err)
{
    if (!is_importance(count))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "the imatrix has a count for %q that is NaN, infinite or below 0",
                                name);
    for (uint64_t i = 0; i < columns; i++)
        values[i] = count > 0 ? values[i] / count : 1.0F;
    return HEFT_OK;
}

static heft_status read_pair(heft_importance *m, const heft_file *f, heft_str name, uint32_t sums,
                             uint32_t counts, heft_error *err)
{
    heft_tensor s = heft_tensor_at(f, sums), c = heft_tensor_at(f, counts);
    float *values, count;
    HEFT_TRY(check_pair(&s, &c, err));
    uint64_t columns = s.dims[s.rank - 1];
    uint64_t bytes = heft_part_at(f, s.first_part).length;
    HEFT_TRY(add(m, name, bytes / sizeof(float), &values, err));
    HEFT_TRY(heft_part_read(values, f, s.first_part, 0, (size_t)bytes, err));
    heft_f32_from_little(values, (size_t)bytes / sizeof(float));
    for (uint64_t i = 0; i < matrices_of(&s); i++) {
        HEFT_TRY(heft_part_read(&count, f, c.first_part, i * sizeof count, sizeof count, err));
        heft_f32_from_little(&count, 1);
        HEFT_TRY(divide(values + i * columns, columns, count, name, err));
    }
    return check_values(at(m, m->entries.len - 1), err);
}

static void read_origin(heft_importance *m, const heft_file *f)
{
    heft_value v;
    if (heft_meta_find(&v, f, heft_lit("imatrix.chunk_count")) && v.kind == HEFT_KIND_UINT &&
        v.as.u <= UINT32_MAX)
        m->chunks = (uint32_t)v.as.u;
    for (uint32_t i = 0; i < heft_meta_count(f); i = heft_meta_next(f, i)) {
        v = heft_meta_at(f, i);
        if (!heft_str_is(v.key, "imatrix.datasets") || v.kind != HEFT_KIND_LIST ||
            !v.as.container.count)
            continue;
        heft_value first = heft_meta_at(f, i + 1);
        if (first.kind == HEFT_KIND_STR)
            m->dataset = heft_arena_copy(&m->arena, first.as.s);
    }
}

static heft_status read_gguf(heft_importance *m, const heft_file *f, heft_error *err)
{
    heft_value type;
    if (!heft_meta_find(&type, f, heft_lit("general.type")) || type.kind != HEFT_KIND_STR ||
        !heft_str_is(type.as.s, "imatrix"))
        return heft_error_plain(err, HEFT_E_FORMAT,
                                "not an imatrix: its metadata \"general.type\" is not \"imatrix\"");
    for (uint32_t i = 0; i < heft_tensor_count(f); i++) {
        heft_tensor t = heft_tensor_at(f, i);
        heft_str name = stem_of(t.name, ".in_sum2");
        if (!name.len)
            continue;
        heft_str full = heft_arena_join(&m->arena, name, heft_lit(".counts"), heft_lit(""));
        uint32_t counts = full.ptr ? heft_tensor_find(f, full) : HEFT_NONE;
        if (counts == HEFT_NONE)
            return heft_error_plain(err, HEFT_E_FORMAT,
                                    "the imatrix is damaged: %q lacks the tensor of its counts",
                                    t.name);
        HEFT_TRY(read_pair(m, f, name, i, counts, err));
    }
    read_origin(m, f);
    return HEFT_OK;
}

/* ---- imatrix.dat ---- */

/* Read a count, which must not be negative. */
static uint64_t read_count(heft_cur *c, const char *what)
{
    uint32_t n = heft_cur_u32(c);
    if (!c->st && n > INT32_MAX)
        heft_cur_fail(c, "the imatrix is damaged: %s is below 0", what);
    return c->st ? 0 : n;
}

static heft_status read_entry(heft_importance *m, heft_cur *c, heft_error *err)
{
    float *values;
    heft_str name = heft_cur_text(c, read_count(c, "the length of a name"), "a name");
    uint64_t calls = read_count(c, "a number of calls");
    uint64_t count = read_count(c, "a number of columns");
    if (c->st)
        return c->st;
    if (!name.len || !count || count > heft_cur_left(c) / sizeof *values)
        return heft_cur_fail(c,
                             "the imatrix is damaged: an entry has no name, or %U numbers that "
                             "the file does not have",
                             count);
    HEFT_TRY(add(m, name, count, &values, err));
    const uint8_t *from = heft_cur_take(c, count * sizeof *values);
    if (from)
        memcpy(values, from, (size_t)(count * sizeof *values));
    heft_f32_from_little(values, (size_t)count);
    for (uint64_t i = 0; i < count && calls; i++)
        values[i] /= (float)calls;
    return c->st ? c->st : check_values(at(m, m->entries.len - 1), err);
}

static heft_status read_dat(heft_importance *m, heft_cur *c, heft_error *err)
{
    uint64_t entries = read_count(c, "the number of entries");
    if (!c->st && !entries)
        return heft_cur_fail(c, "not an imatrix: no entries");
    for (uint64_t i = 0; i < entries && !c->st; i++)
        HEFT_TRY(read_entry(m, c, err));
    if (c->st || !heft_cur_left(c))
        return c->st;
    m->chunks = (uint32_t)read_count(c, "the number of chunks");
    heft_str dataset = heft_cur_text(c, read_count(c, "the length of a name"), "a name");
    if (!c->st)
        m->dataset = heft_arena_copy(&m->arena, dataset);
    m->trailing = heft_cur_left(c);
    return c->st;
}

/* ---- the functions of mix.h ---- */

static heft_status create(heft_importance **out, const heft_allocator *al, heft_error *err)
{
    heft_importance *m = heft_alloc(al, sizeof *m, 64);
    *out = m;
    if (!m)
        return heft_error_no_memory(err, purpose);
    *m = (heft_importance){ .mem = { al, UINT64_MAX, 0 } };
    m->arena.mem = &m->mem;
    return HEFT_OK;
}

static heft_status finish(heft_importance **out, heft_status st, heft_error *err)
{
    if (!st)
        st = sort_entries(*out, err);
    if (!st && !(*out)->entries.len)
        st = heft_error_plain(err, HEFT_E_FORMAT, "the imatrix has no entries");
    if (st) {
        heft_importance_close(*out);
        *out = NULL;
    }
    return heft_error_end(err, st);
}

heft_status heft_importance_open(heft_importance **out, const heft_file *f, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    HEFT_TRY(create(out, f->host->allocator, err));
    heft_file_enter(f);
    return finish(out, heft_file_leave_after(f, read_gguf(*out, f, err), err), err);
}

heft_status heft_importance_read(heft_importance **out, const void *data, size_t size,
                                 const heft_host *host, heft_error *err)
{
    heft_error own;
    err = heft_error_begin(err, &own);
    heft_window_bytes w = heft_window_of(data, size, err);
    heft_cur c = heft_cur_open(&w.in, 0, size, "the imatrix");
    HEFT_TRY(create(out, (host ? host : heft_host_default())->allocator, err));
    return finish(out, read_dat(*out, &c, err), err);
}

void heft_importance_close(heft_importance *m)
{
    if (!m)
        return;
    heft_vec_free(&m->mem, &m->entries, sizeof(entry));
    heft_arena_free(&m->arena);
    heft_free(m->mem.al, m, sizeof *m, 64);
}

uint32_t heft_importance_count(const heft_importance *m)
{
    return m->entries.len;
}

const float *heft_importance_find(uint64_t *count, const heft_importance *m, heft_str name)
{
    heft_bisect b = { .end = m->entries.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, heft_str_order(at(m, b.mid)->name, name) < 0);
    if (b.first == m->entries.len || !heft_str_eq(at(m, b.first)->name, name))
        return NULL;
    *count = at(m, b.first)->count;
    return at(m, b.first)->values;
}

heft_str heft_importance_dataset(const heft_importance *m)
{
    return m->dataset;
}

uint32_t heft_importance_chunks(const heft_importance *m)
{
    return m->chunks;
}

uint64_t heft_importance_trailing(const heft_importance *m)
{
    return m->trailing;
}
