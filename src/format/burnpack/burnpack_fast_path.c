/* burnpack_fast_path.c - a descriptor of a Burnpack as every writer spells it, which nearly all are; of very many of them
 * several at once.  Anything else is left to burnpack_manifest.c, which takes items in any order. */
#include "base/compiler.h"
#include "format/burnpack/burnpack.h"
#include "model/parallel.h"
#include "model/records.h"

enum { MOST_RANK = 8, ITEMS = 2 /* of the map of tensors: a name and a descriptor */ };

typedef struct usual {
    heft_str name;
    uint64_t at, begin, end, param_id;
    uint8_t shape[8 * MOST_RANK];
    uint32_t rank;
    heft_dtype type;
    bool has_id;
} usual;

static bool look_at_descriptor(heft_cbor_fast *l, usual *u)
{
    uint32_t fields, offsets;
    if (!heft_cbor_fast_head(l, HEFT_CBOR_HEAD_MAP, 4, &fields) || fields < 3 ||
        !heft_cbor_fast_text(l, "dtype", 5) || !heft_burnpack_fast_type(l, &u->type) ||
        !heft_cbor_fast_text(l, "shape", 5) ||
        !heft_cbor_fast_u64s(l, u->shape, MOST_RANK, &u->rank) ||
        !heft_cbor_fast_text(l, "data_offsets", 12) ||
        !heft_cbor_fast_head(l, HEFT_CBOR_HEAD_ARRAY, 2, &offsets) || offsets != 2 ||
        !heft_cbor_fast_u64(l, &u->begin) || !heft_cbor_fast_u64(l, &u->end) || u->begin > u->end)
        return false;
    u->has_id = fields == 4;
    return !u->has_id ||
           (heft_cbor_fast_text(l, "param_id", 8) && heft_cbor_fast_u64(l, &u->param_id));
}

void heft_burnpack_record_fields(heft_burnpack_manifest *found, heft_index *x, uint32_t id,
                                 uint64_t at)
{
    const heft_ix_part_row *part = heft_ix_part_row_at(x, heft_ix_row(x, id)->first_part);
    uint64_t end = part->offset + part->stored;
    if (end > found->end || !found->end) {
        found->end = end;
        found->end_tensor = id;
    }
    found->is_unaligned = found->is_unaligned ||
                          (part->offset % HEFT_BURNPACK_ALIGN && part->stored);
    if (heft_unlikely(part->stored > HEFT_BURNPACK_MAX_TENSOR))
        heft_ix_note(x, HEFT_WARNING, "burnpack/tensor-size", at, id,
                     "it is larger than 10 GiB: Burn will refuse this file");
}

heft_status heft_burnpack_read_canonical(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found,
                                         bool *read)
{
    usual u;
    heft_cbor_fast l;
    *read = heft_cbor_fast_at(&l, c, ITEMS, 2) && heft_cbor_fast_string(&l, &u.name) &&
            look_at_descriptor(&l, &u);
    if (!*read)
        return HEFT_OK;
    u.at = heft_cbor_offset(c, c->p);
    heft_cbor_accept(c, &l, ITEMS);
    heft_ix_record r = { .name = u.name,
                         .shape = u.shape,
                         .at = u.at,
                         .offset = u.begin,
                         .length = u.end - u.begin,
                         .rank = u.rank,
                         .dtype = u.type };
    heft_status st = heft_ix_add(x, &r);
    if (!st && u.has_id)
        st = heft_ix_param_id(x, r.id, u.param_id);
    if (!st)
        heft_burnpack_record_fields(found, x, r.id, u.at);
    return st;
}

/* ---- side by side ---- */

typedef struct many {
    const heft_cbor *from;
    heft_burnpack_manifest *found, of[HEFT_IX_CHUNKS];
} many;

/* Behind the first descriptor that begins here or later. */
static const uint8_t *seek(const void *ctx, const uint8_t *p, const uint8_t *end)
{
    static const uint8_t key[] = { 0x65, 'd', 't', 'y', 'p', 'e' };
    const many *m = ctx;
    const uint8_t *q = p + 1;
    while (end > q && (q = heft_str_seek(q, end, key, sizeof key)) != NULL) {
        heft_cbor_fast l = { q - 1, m->from->end };
        usual u;
        if (look_at_descriptor(&l, &u))
            return l.p;
        q++;
    }
    return NULL;
}

static const uint8_t *read_slice(void *ctx, const uint8_t *p, const uint8_t *end, heft_index *x,
                                 uint32_t slice)
{
    many *m = ctx;
    heft_burnpack_manifest found = { .end = 0 };
    heft_cbor c = *m->from;
    heft_status st = HEFT_OK;
    bool read = true;
    c.p = p;
    while (read && !st && c.p < end)
        st = heft_burnpack_read_canonical(&c, x, &found, &read);
    m->of[slice] = found;
    return st ? NULL : c.p;
}

static void join(void *ctx, uint32_t slice, uint32_t moved)
{
    const many *m = ctx;
    const heft_burnpack_manifest *s = &m->of[slice];
    if (s->end > m->found->end || !m->found->end) {
        m->found->end = s->end;
        m->found->end_tensor = s->end_tensor - moved;
    }
    m->found->is_unaligned = m->found->is_unaligned || s->is_unaligned;
}

void heft_burnpack_read_parallel(heft_cbor *c, heft_index *x, heft_burnpack_manifest *found)
{
    many m = { .from = c, .found = found };
    heft_ix_text_records how = {
        .seek = seek, .read = read_slice, .join = join, .ctx = &m, .param_ids = true
    };
    uint32_t before = x->tensors.len;
    const uint8_t *p = heft_ix_parallel_text(x, c->p, c->end, c->frame.left / ITEMS, &how);
    heft_cbor_fast l = { p, c->end };
    heft_cbor_accept(c, &l, (x->tensors.len - before) * ITEMS);
}
