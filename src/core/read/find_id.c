/* find_id.c - finds tensors by id instead of by name: the base ids of gpt-rs (hashes of names) and
 * the parameter ids of Burn. */
#include "base/bisect.h"
#include "base/blake3.h"
#include "base/sort.h"
#include "core/read/file.h"

enum { BASE_ID_BYTES = 16, CHUNK = 4096 /* tensors hashed per worker call */ };

static bool base_id_of(uint8_t out[BASE_ID_BYTES], const heft_index *x, uint32_t tensor)
{
    heft_str name = heft_ix_name(x, tensor);
    if (!heft_is_ascii(name.ptr, name.len))
        return false;
    heft_blake3_id(out, name.ptr, name.len);
    return true;
}

static bool burn_id_of(uint64_t *out, const heft_index *x, uint32_t tensor)
{
    const heft_ix_tensor_row *row = heft_ix_row(x, tensor);
    heft_value v;
    if (!(row->flags & HEFT_T_PARAM_ID) && !row->attrs)
        return false;
    bool has = heft_ix_find_attribute(&v, x, tensor, "burn.param_id") && v.kind == HEFT_KIND_UINT;
    if (has)
        *out = v.as.u;
    return has;
}

uint32_t heft_tensor_find_id(const heft_file *f, const heft_id *id, uint32_t *count)
{
    uint32_t found = HEFT_NONE, n = 0;
    uint8_t base[BASE_ID_BYTES];
    uint64_t burn;
    heft_file_enter(f); /* names are mapped */
    for (uint32_t t = 0; t < heft_ix_tensors(&f->x); t++) {
        bool has_id = id->kind == HEFT_ID_BURN
                          ? burn_id_of(&burn, &f->x, t) && burn == id->burn
                          : id->kind == HEFT_ID_BASE && base_id_of(base, &f->x, t) &&
                                !memcmp(base, id->base.bytes, BASE_ID_BYTES);
        if (has_id && !n++)
            found = t;
    }
    heft_file_disarm(f); /* reading the tensor reports a truncated file */
    if (count)
        *count = n;
    return found;
}

/* ---- many lookups in the same file ---- */

typedef struct id_order { /* tensors that have an id of this kind, sorted by id */
    uint32_t *tensors, count;
} id_order;

struct heft_ids {
    const heft_file *f;
    heft_memory mem;
    size_t table_bytes; /* size of tables */
    void *tables;
    uint64_t *burn;                 /* by tensor */
    uint8_t (*base)[BASE_ID_BYTES]; /* by tensor */
    uint8_t *kinds;                 /* by tensor: a bit for each kind of id */
    id_order by[2];                 /* by kind */
};

static void collect_chunk(void *arg, size_t chunk)
{
    heft_ids *ids = arg;
    uint32_t all = heft_ix_tensors(&ids->f->x), from = (uint32_t)chunk * CHUNK;
    uint32_t end = all - from < CHUNK ? all : from + CHUNK;
    for (uint32_t t = from; t < end; t++) {
        bool has_base = base_id_of(ids->base[t], &ids->f->x, t);
        bool has_burn = burn_id_of(&ids->burn[t], &ids->f->x, t);
        ids->kinds[t] = (uint8_t)(has_base << HEFT_ID_BASE | has_burn << HEFT_ID_BURN);
    }
}

static bool base_id_less(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ids *ids = ctx;
    return memcmp(ids->base[a], ids->base[b], BASE_ID_BYTES) < 0;
}

static bool burn_id_less(const void *ctx, uint32_t a, uint32_t b)
{
    const heft_ids *ids = ctx;
    return ids->burn[a] < ids->burn[b];
}

/* Allocate all tables in a single block, the most aligned elements first. */
static bool make_tables(heft_ids *ids)
{
    size_t n = heft_ix_tensors(&ids->f->x);
    size_t per_tensor = sizeof *ids->burn + sizeof *ids->base + 3 * sizeof(uint32_t) + 1;
    ids->table_bytes = n * per_tensor + 1;
    ids->tables = heft_mem_alloc(&ids->mem, ids->table_bytes);
    if (!ids->tables)
        return false;
    ids->burn = ids->tables;
    ids->base = (uint8_t(*)[BASE_ID_BYTES])(ids->burn + n);
    ids->by[HEFT_ID_BASE].tensors = (uint32_t *)(void *)(ids->base + n);
    ids->by[HEFT_ID_BURN].tensors = ids->by[HEFT_ID_BASE].tensors + n;
    ids->kinds = (uint8_t *)(ids->by[HEFT_ID_BURN].tensors + 2 * n);
    return true;
}

heft_status heft_ids_open(heft_ids **out, const heft_file *f, heft_error *err)
{
    const heft_allocator *al = f->host->allocator;
    heft_error own;
    uint32_t n = heft_ix_tensors(&f->x);
    heft_ids *ids = heft_alloc(al, sizeof *ids, 16);
    err = heft_error_begin(err, &own);
    *out = NULL;
    if (ids)
        *ids = (heft_ids){ .f = f, .mem = { al, UINT64_MAX, 0 } };
    if (!ids || !make_tables(ids)) {
        heft_ids_close(ids);
        return heft_error_end(
            err, heft_error_plain(err, HEFT_E_NOMEM, "no memory for %U ids", (uint64_t)n));
    }
    heft_file_enter(f);
    heft_host_run(f->host, (n + (size_t)CHUNK - 1) / CHUNK, collect_chunk, ids);
    heft_status st = heft_file_leave(f, err);
    for (heft_id_kind kind = HEFT_ID_BASE; kind <= HEFT_ID_BURN; kind++) {
        id_order *by = &ids->by[kind];
        for (uint32_t t = 0; t < n; t++)
            if (ids->kinds[t] >> kind & 1)
                by->tensors[by->count++] = t;
        heft_sort(by->tensors, ids->by[HEFT_ID_BURN].tensors + n, by->count,
                  kind == HEFT_ID_BASE ? base_id_less : burn_id_less, ids);
    }
    if (st)
        heft_ids_close(ids);
    else
        *out = ids;
    return heft_error_end(err, st);
}

void heft_ids_close(heft_ids *ids)
{
    if (!ids)
        return;
    const heft_allocator *al = ids->f->host->allocator;
    heft_mem_free(&ids->mem, ids->tables, ids->table_bytes);
    heft_free(al, ids, sizeof *ids, 16);
}

/* Return the number of tensors with an id less than `id`, or with `inclusive` less or equal. */
static uint32_t count_before(const heft_ids *ids, const heft_id *id, bool inclusive)
{
    const id_order *by = &ids->by[id->kind];
    heft_bisect b = { .end = by->count };
    while (heft_bisect_next(&b)) {
        uint32_t t = by->tensors[b.mid];
        int order = id->kind == HEFT_ID_BASE
                        ? memcmp(ids->base[t], id->base.bytes, BASE_ID_BYTES)
                        : (ids->burn[t] > id->burn) - (ids->burn[t] < id->burn);
        heft_bisect_narrow(&b, order < (inclusive ? 1 : 0));
    }
    return b.first;
}

uint32_t heft_ids_find(const heft_ids *ids, const heft_id *id, uint32_t *count)
{
    bool is_kind = id->kind == HEFT_ID_BASE || id->kind == HEFT_ID_BURN;
    uint32_t first = is_kind ? count_before(ids, id, false) : 0;
    uint32_t n = is_kind ? count_before(ids, id, true) - first : 0;
    if (count)
        *count = n;
    return n ? ids->by[id->kind].tensors[first] : HEFT_NONE;
}
