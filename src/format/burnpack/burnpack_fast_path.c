/* burnpack_fast_path.c - fast and parallel parsing of tensor descriptors in the form that every
 * writer uses.  burnpack_manifest.c parses all other forms. */
#include "base/compiler.h"
#include "format/burnpack/burnpack.h"
#include "model/parallel.h"
#include "model/records.h"

enum { MAX_RANK = 8, ITEMS = 2 /* CBOR items of a tensor: name and descriptor */ };

typedef struct descriptor {
    heft_str name;
    uint64_t at, begin, end, param_id;
    uint8_t shape[8 * MAX_RANK];
    uint32_t rank;
    heft_dtype type;
    bool has_id;
} descriptor;

static bool parse_descriptor(heft_cbor_fast *f, descriptor *d)
{
    uint32_t fields, offsets;
    if (!heft_cbor_fast_head(f, HEFT_CBOR_HEAD_MAP, 4, &fields) || fields < 3 ||
        !heft_cbor_fast_text(f, "dtype", 5) || !heft_burnpack_fast_type(f, &d->type) ||
        !heft_cbor_fast_text(f, "shape", 5) ||
        !heft_cbor_fast_u64s(f, d->shape, MAX_RANK, &d->rank) ||
        !heft_cbor_fast_text(f, "data_offsets", 12) ||
        !heft_cbor_fast_head(f, HEFT_CBOR_HEAD_ARRAY, 2, &offsets) || offsets != 2 ||
        !heft_cbor_fast_u64(f, &d->begin) || !heft_cbor_fast_u64(f, &d->end) || d->begin > d->end)
        return false;
    d->has_id = fields == 4;
    return !d->has_id ||
           (heft_cbor_fast_text(f, "param_id", 8) && heft_cbor_fast_u64(f, &d->param_id));
}

void heft_burnpack_count_tensor(heft_burnpack_manifest *manifest, heft_index *x, uint32_t id,
                                uint64_t at)
{
    const heft_ix_part_row *part = heft_ix_part_row_at(x, heft_ix_row(x, id)->first_part);
    uint64_t end = part->offset + part->stored;
    if (end > manifest->data_bytes || !manifest->data_bytes) {
        manifest->data_bytes = end;
        manifest->last_tensor = id;
    }
    manifest->is_unaligned = manifest->is_unaligned ||
                             (part->offset % HEFT_BURNPACK_ALIGN && part->stored);
    if (heft_unlikely(part->stored > HEFT_BURNPACK_MAX_TENSOR))
        heft_ix_note(x, HEFT_WARNING, "burnpack/tensor-size", at, id,
                     "the tensor is larger than 10 GiB: Burn will refuse this file");
}

heft_status heft_burnpack_read_canonical(heft_cbor *c, heft_index *x,
                                         heft_burnpack_manifest *manifest, bool *read)
{
    descriptor d;
    heft_cbor_fast f;
    *read = heft_cbor_fast_at(&f, c, ITEMS, 2) && heft_cbor_fast_string(&f, &d.name) &&
            parse_descriptor(&f, &d);
    if (!*read)
        return HEFT_OK;
    d.at = heft_cbor_offset(c, c->p);
    heft_cbor_accept(c, &f, ITEMS);
    heft_ix_record r = { .name = d.name,
                         .shape = d.shape,
                         .at = d.at,
                         .offset = d.begin,
                         .length = d.end - d.begin,
                         .rank = d.rank,
                         .dtype = d.type };
    HEFT_TRY(heft_ix_add(x, &r));
    if (d.has_id)
        HEFT_TRY(heft_ix_param_id(x, r.id, d.param_id));
    heft_burnpack_count_tensor(manifest, x, r.id, d.at);
    return HEFT_OK;
}

/* ---- several threads ---- */

typedef struct parallel_reader {
    const heft_cbor *cbor;
    heft_burnpack_manifest *manifest; /* totals of the merged chunks */
    heft_burnpack_manifest by_chunk[HEFT_IX_CHUNKS];
} parallel_reader;

/* Find a descriptor by the first key, "dtype" in CBOR.  Return the end of the descriptor, where
 * the next tensor begins. */
static const uint8_t *find_descriptor(const void *ctx, const uint8_t *p, const uint8_t *end)
{
    static const uint8_t key[] = { 0x65, 'd', 't', 'y', 'p', 'e' };
    const parallel_reader *r = ctx;
    const uint8_t *at = p + 1;
    while (end > at && (at = heft_str_seek(at, end, key, sizeof key)) != NULL) {
        heft_cbor_fast f = { at - 1, r->cbor->end };
        descriptor d;
        if (parse_descriptor(&f, &d))
            return f.p;
        at++;
    }
    return NULL;
}

static const uint8_t *read_chunk(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                                 uint32_t chunk)
{
    parallel_reader *r = ctx;
    heft_burnpack_manifest totals = { .data_bytes = 0 };
    heft_cbor c = *r->cbor;
    heft_status st = HEFT_OK;
    bool read = true;
    c.p = p;
    while (read && !st && c.p < end)
        st = heft_burnpack_read_canonical(&c, x, &totals, &read);
    r->by_chunk[chunk] = totals;
    return st ? NULL : c.p;
}

static void merge_chunk(void *ctx, uint32_t chunk, uint32_t removed)
{
    const parallel_reader *r = ctx;
    const heft_burnpack_manifest *totals = &r->by_chunk[chunk];
    if (totals->data_bytes > r->manifest->data_bytes || !r->manifest->data_bytes) {
        r->manifest->data_bytes = totals->data_bytes;
        r->manifest->last_tensor = totals->last_tensor - removed;
    }
    r->manifest->is_unaligned = r->manifest->is_unaligned || totals->is_unaligned;
}

void heft_burnpack_read_parallel(heft_cbor *c, heft_index *x, heft_burnpack_manifest *manifest)
{
    parallel_reader r = { .cbor = c, .manifest = manifest };
    heft_ix_text_records how = { .seek = find_descriptor,
                                 .read = read_chunk,
                                 .join = merge_chunk,
                                 .ctx = &r,
                                 .param_ids = true };
    uint32_t before = x->tensors.len;
    const uint8_t *p = heft_ix_parallel_text(x, c->p, c->end, c->frame.left / ITEMS, &how);
    heft_cbor_fast f = { p, c->end };
    heft_cbor_accept(c, &f, (x->tensors.len - before) * ITEMS);
}
