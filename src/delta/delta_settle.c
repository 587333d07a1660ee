/* delta_settle.c - brings changes and their base together: the values that are replaced, exclusive
 * ors, and checksums of the result. */
#include "delta/delta_settle.h"

#include "base/error.h"
#include "core/read/stream.h"
#include "delta/delta_scan.h"

static const char purpose[] = "to apply a delta";

heft_combine_input heft_delta_input(const heft_file *f, uint32_t number, uint32_t tensor,
                                    uint32_t part)
{
    const heft_ix_tensor_row *row = heft_ix_row(&f->x, tensor);
    return (heft_combine_input){ .f = f,
                                 .name = heft_ix_name(&f->x, tensor),
                                 .tensor = tensor,
                                 .part = part,
                                 .dtype = row->dtype,
                                 .rank = row->rank,
                                 .dims = heft_ix_dims(&f->x, tensor),
                                 .count = heft_ix_part_row_at(&f->x, part)->length,
                                 .number = number };
}

/* ---- the values that are replaced ---- */

static inline void gather(uint8_t *to, const uint8_t *block, const uint16_t *positions, uint64_t n,
                          unsigned unit)
{
    enum { AHEAD = 24 };
    for (uint64_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            heft_prefetch_line(block + (size_t)positions[i + AHEAD] * unit);
        memcpy(to + i * unit, block + (size_t)positions[i] * unit, unit);
    }
}

static void gather_units(uint8_t *to, const uint8_t *block, const uint16_t *positions, uint64_t n,
                         unsigned unit)
{
    switch (unit) { /* constants, so that each loop moves words */
    case 1:
        gather(to, block, positions, n, 1);
        break;
    case 2:
        gather(to, block, positions, n, 2);
        break;
    case 4:
        gather(to, block, positions, n, 4);
        break;
    default:
        gather(to, block, positions, n, 8);
    }
}

/* Make the bytes from the first to the last position of block b visible at their place in the
 * block. */
static heft_status see_block(const uint8_t **out, uint8_t *buf, const heft_delta_loaded *l,
                             uint64_t b, heft_delta_source *at, heft_error *err)
{
    uint64_t first = l->starts[b], last = l->starts[b + 1] - 1;
    uint64_t from = b * HEFT_DELTA_BLOCK * l->unit;
    size_t begin = (size_t)l->positions[first] * l->unit;
    size_t end = ((size_t)l->positions[last] + 1) * l->unit;
    *out = at->in_place ? at->in_place + from : buf;
    return at->in_place ? HEFT_OK
                        : heft_combine_read_bytes(&at->reader, &at->in, from + begin, buf + begin,
                                                  end - begin, err);
}

heft_status heft_delta_gather(uint8_t *old, const heft_delta_loaded *l, heft_delta_source *at,
                              uint8_t *buf, heft_error *err)
{
    for (uint64_t b = 0; b < l->blocks; b++) {
        uint64_t first = l->starts[b], n = l->starts[b + 1] - first;
        const uint8_t *block;
        if (!n)
            continue;
        HEFT_TRY(see_block(&block, buf, l, b, at, err));
        gather_units(old + first * l->unit, block, l->positions + first, n, l->unit);
    }
    return HEFT_OK;
}

/* ---- checksums of the new bytes ---- */

static bool adler32_init(void *state)
{
    uint32_t *s = state;
    s[0] = 1;
    s[1] = 0;
    return true;
}

static void adler32_update(void *state, const void *data, size_t len)
{
    enum { BASE = 65521, MOST = 5552 }; /* sums of MOST bytes fit into 32 bits */
    uint32_t *s = state;
    const uint8_t *p = data;
    while (len) {
        size_t n = len < MOST ? len : MOST;
        len -= n;
        for (; n; n--) {
            s[0] += *p++;
            s[1] += s[0];
        }
        s[0] %= BASE;
        s[1] %= BASE;
    }
}

static void adler32_final(uint8_t *out, void *state)
{
    const uint32_t *s = state;
    for (int i = 0; out && i < 4; i++)
        out[i] = (uint8_t)((i < 2 ? s[1] : s[0]) >> (i % 2 ? 0 : 8));
}

static bool blake3_init(void *state)
{
    heft_blake3_init(state);
    return true;
}

static void blake3_update(void *state, const void *data, size_t len)
{
    heft_blake3_update(state, data, len);
}

static void blake3_final(uint8_t *out, void *state)
{
    if (out)
        heft_blake3_final(state, out);
}

static const heft_digest own_digests[] = {
    { sizeof(heft_digest), "adler32", 4, 8, adler32_init, adler32_update, adler32_final, NULL,
      NULL },
    { sizeof(heft_digest), "blake3", HEFT_HASH_BYTES, sizeof(heft_blake3), blake3_init,
      blake3_update, blake3_final, NULL, NULL },
};

const heft_digest *heft_delta_digest(const heft_host *host, const char *name)
{
    for (size_t i = 0; i < sizeof own_digests / sizeof *own_digests; i++)
        if (heft_str_is(heft_lit(name), own_digests[i].name))
            return &own_digests[i];
    return heft_host_digest(host, name);
}

static heft_status add_block(heft_running_digest *r, const heft_delta_loaded *l, uint64_t b,
                             heft_delta_source *at, uint8_t *buf, heft_error *err)
{
    uint64_t from = b * HEFT_DELTA_BLOCK, left = l->units - from, first = l->starts[b];
    size_t units = left < HEFT_DELTA_BLOCK ? (size_t)left : HEFT_DELTA_BLOCK;
    if (at->in_place)
        memcpy(buf, at->in_place + from * l->unit, units * l->unit);
    else
        HEFT_TRY(heft_combine_read_bytes(&at->reader, &at->in, from * l->unit, buf, units * l->unit,
                                         err));
    heft_delta_put(buf, 0, units, l->positions + first, l->values + first * l->unit,
                   (uint32_t)(l->starts[b + 1] - first), l->unit);
    heft_running_digest_update(r, buf, units * l->unit);
    return HEFT_OK;
}

heft_status heft_delta_verify_result(const heft_delta *d, const heft_delta_item *item,
                                     const heft_delta_loaded *l, heft_delta_source *at,
                                     uint8_t *buf, heft_error *err)
{
    uint8_t got[64], want[64];
    heft_running_digest r = { .digest = NULL };
    const heft_digest *digest = heft_delta_digest(d->f->host, d->algorithm);
    if (!digest) {
        heft_status st =
            heft_error_plain(err, HEFT_E_UNSUPPORTED,
                             "this build cannot compute %s, the checksum of the delta (--no-verify "
                             "applies it all the same)",
                             d->algorithm);
        return heft_error_input(err, st, HEFT_INPUT_SECOND);
    }
    if (item->checksum.len != 2 * (size_t)digest->bytes ||
        !heft_hex_read(want, digest->bytes, item->checksum))
        return heft_delta_bad(err, item->row.name, "has a checksum of another length");
    HEFT_TRY(heft_running_digest_begin(&r, digest, d->f->host->allocator, purpose, err));
    heft_status st = HEFT_OK;
    for (uint64_t b = 0; b < l->blocks && !st; b++)
        st = add_block(&r, l, b, at, buf, err);
    heft_running_digest_end(&r, got);
    heft_running_digest_close(&r);
    if (st || !memcmp(got, want, digest->bytes))
        return st;
    return heft_error_plain(
        err, HEFT_E_ARGUMENT,
        "tensor %q would not have the checksum that the delta states: the delta "
        "was made from another model, or is damaged",
        item->row.name);
}

/* ---- all of it ---- */

heft_status heft_delta_settle(heft_delta_settled *s, const heft_delta *d, uint32_t item,
                              const heft_file *base, uint32_t tensor, bool verifies,
                              heft_error *err)
{
    const heft_delta_item *it = heft_delta_item_at(d, item);
    const heft_allocator *al = d->f->host->allocator;
    const heft_ix_tensor_row *t = heft_ix_row(&base->x, tensor);
    const heft_ix_part_row *row = heft_ix_part_row_at(&base->x, t->first_part);
    heft_delta_loaded *l = &s->loaded;
    bool needs_old = s->wants_old, has_checksum = verifies && it->checksum.len;
    heft_status st = heft_delta_load(l, d, item, t->dtype, row->length, err);
    HEFT_TRY(heft_error_input(err, st, HEFT_INPUT_SECOND));
    needs_old = needs_old || l->is_xor;
    if (!needs_old && !has_checksum)
        return HEFT_OK;
    size_t block = (size_t)HEFT_DELTA_BLOCK * l->unit;
    heft_delta_source at = { .in = heft_delta_input(base, HEFT_INPUT_FIRST, tensor, t->first_part),
                             .reader = { .al = al } };
    if (heft_ix_is_plain(row))
        at.in_place = heft_file_map(base, row->offset, row->length);
    s->old_bytes = (size_t)(l->starts[l->blocks] * l->unit) + 1;
    s->old = needs_old ? heft_alloc(al, s->old_bytes, 64) : NULL;
    uint8_t *buf = heft_alloc(al, block, 64);
    st = buf && (s->old || !needs_old) ? HEFT_OK : heft_error_no_memory(err, purpose);
    if (!st && s->old)
        st = heft_delta_gather(s->old, l, &at, buf, err);
    if (!st && l->is_xor)
        heft_delta_xor(l->values, s->old, s->old_bytes - 1);
    l->is_xor = false;
    if (!st && has_checksum)
        st = heft_delta_verify_result(d, it, l, &at, buf, err);
    heft_combine_reader_free(&at.reader);
    heft_free(al, buf, block, 64);
    if (!s->wants_old) {
        heft_free(al, s->old, s->old_bytes, 64);
        s->old = NULL;
    }
    return st;
}

void heft_delta_settled_free(heft_delta_settled *s, const heft_delta *d)
{
    heft_free(d->f->host->allocator, s->old, s->old_bytes, 64);
    heft_delta_unload(&s->loaded, d);
}
