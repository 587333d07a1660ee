/* delta_pair.c - two tensors are read side by side in pieces of 1 MiB, the pieces of the digest of
 * a tensor.  Each piece is hashed and compared by one thread while it is in the cache. */
#include "delta/delta_pair.h"

#include "core/read/stream.h"
#include "delta/delta_scan.h"

/* The width of a host may be that of the largest machine, and each slot takes 6 MiB: the first use
 * of their pages took a fifth of the time with twice as many slots. */
enum { PIECE = 1 << 20, BLOCKS = PIECE / HEFT_DELTA_BLOCK, MOST_SLOTS = 16 };
static const char purpose[] = "to compare tensors";

typedef struct heft_delta_slot {
    const uint8_t *old, *new; /* bytes: in place, or in the buffers */
    uint8_t *old_buffer, *new_buffer;
    uint64_t from;
    size_t length;
    heft_delta_found found;
    uint32_t counts[BLOCKS], changed;
    uint8_t old_digest[HEFT_HASH_BYTES], new_digest[HEFT_HASH_BYTES];
} heft_delta_slot;

typedef struct batch {
    heft_delta_pair *p;
    heft_delta_slot *slots;
    bool is_read; /* the bytes of the slots are there */
} batch;

/* ---- memory ---- */

enum { SLOT_BYTES = 4 * PIECE + 2 * PIECE }; /* two buffers, old and new units, gaps */

static heft_status open_slot(heft_delta_slot *s, heft_memory *mem, heft_error *err)
{
    uint8_t *bytes = heft_mem_alloc(mem, SLOT_BYTES);
    if (!bytes)
        return heft_error_no_memory(err, purpose);
    s->old_buffer = bytes;
    s->new_buffer = bytes + PIECE;
    s->found = (heft_delta_found){ .gaps = (uint16_t *)(void *)(bytes + (size_t)4 * PIECE),
                                   .old = bytes + (size_t)2 * PIECE,
                                   .new = bytes + (size_t)3 * PIECE };
    return HEFT_OK;
}

heft_status heft_delta_slots_open(heft_delta_slots *s, const heft_host *host, heft_memory *mem,
                                  heft_error *err)
{
    uint32_t width = host->executor ? host->executor->width : 1;
    *s = (heft_delta_slots){ .mem = mem };
    s->count = width < MOST_SLOTS / 2 ? 2 * width : MOST_SLOTS;
    s->count = s->count ? s->count : 1;
    s->slots = heft_mem_alloc(mem, s->count * sizeof *s->slots);
    if (!s->slots)
        return heft_error_no_memory(err, purpose);
    for (uint32_t i = 0; i < s->count; i++)
        s->slots[i] = (heft_delta_slot){ .old = NULL };
    for (uint32_t i = 0; i < s->count; i++)
        HEFT_TRY(open_slot(&s->slots[i], mem, err));
    return HEFT_OK;
}

void heft_delta_slots_close(heft_delta_slots *s)
{
    for (uint32_t i = 0; s->slots && i < s->count; i++)
        heft_mem_free(s->mem, s->slots[i].old_buffer, SLOT_BYTES);
    heft_mem_free(s->mem, s->slots, s->count * sizeof *s->slots);
}

heft_status heft_delta_are_complete(const heft_file *old, const heft_file *new, heft_error *err)
{
    HEFT_TRY(heft_error_input(err, heft_file_is_complete(old, err), HEFT_INPUT_FIRST));
    return heft_error_input(err, heft_file_is_complete(new, err), HEFT_INPUT_SECOND);
}

heft_status heft_delta_are_unchanged(const heft_file *old, const heft_file *new, heft_error *err)
{
    HEFT_TRY(heft_error_input(err, heft_file_is_unchanged(old, err), HEFT_INPUT_FIRST));
    return heft_error_input(err, heft_file_is_unchanged(new, err), HEFT_INPUT_SECOND);
}

heft_status heft_delta_open_both(heft_stream **old, heft_stream **new, const heft_delta_pair *p,
                                 heft_error *err)
{
    heft_status st = heft_stream_open(old, p->old, p->old_part, err);
    HEFT_TRY(heft_error_input(err, st, HEFT_INPUT_FIRST));
    st = heft_stream_open(new, p->new, p->new_part, err);
    return heft_error_input(err, st, HEFT_INPUT_SECOND);
}

heft_status heft_delta_read_both(void *to_old, heft_stream *old, void *to_new, heft_stream *new,
                                 size_t len, heft_error *err)
{
    HEFT_TRY(heft_error_input(err, heft_stream_read(to_old, old, len, err), HEFT_INPUT_FIRST));
    return heft_error_input(err, heft_stream_read(to_new, new, len, err), HEFT_INPUT_SECOND);
}

unsigned heft_delta_unit(heft_dtype t)
{
    const heft_dtype_info *d = heft_dtype_get(t);
    uint32_t bytes = d ? d->block_bytes : 1;
    if (bytes == 16) /* complex numbers of two doubles */
        return 8;
    return d && d->block_elems == 1 && (bytes == 2 || bytes == 4 || bytes == 8) ? bytes : 1;
}

/* ---- a piece, on any thread ---- */

static void hash(uint8_t out[HEFT_HASH_BYTES], const uint8_t *data, size_t len)
{
    heft_blake3 h;
    heft_blake3_init(&h);
    heft_blake3_update(&h, data, len);
    heft_blake3_final(&h, out);
}

static heft_status fetch(const uint8_t **out, uint8_t *buffer, const heft_file *f, uint32_t part,
                         const heft_delta_slot *s, heft_error *err)
{
    const uint8_t *in_place = heft_part_in_place(f, part);
    *out = in_place ? in_place + s->from : buffer;
    if (in_place)
        return heft_file_count_read(f, part, s->length, err);
    return heft_read_unchecked(buffer, f, part, s->from, s->length, err);
}

static void scan_piece(const heft_delta_pair *p, heft_delta_slot *s)
{
    size_t block = (size_t)HEFT_DELTA_BLOCK * p->unit;
    uint32_t number = 0;
    for (size_t at = 0; at < s->length; at += block, number++) {
        size_t here = s->length - at < block ? s->length - at : block;
        heft_delta_found f = { s->found.gaps + s->changed,
                               s->found.old + (size_t)s->changed * p->unit,
                               s->found.new + (size_t)s->changed * p->unit };
        s->counts[number] = heft_delta_scan(&f, s->old + at, s->new + at, (uint32_t)here / p->unit,
                                            p->unit);
        s->changed += s->counts[number];
    }
}

static void compare_piece(void *arg, size_t i)
{
    const batch *b = arg;
    heft_delta_pair *p = b->p;
    heft_delta_slot *s = &b->slots[i];
    heft_error err;
    if (heft_progress_halted(p->progress))
        return;
    heft_status st = HEFT_OK;
    if (!b->is_read)
        st = fetch(&s->old, s->old_buffer, p->old, p->old_part, s, &err);
    st = heft_error_input(&err, st, HEFT_INPUT_FIRST);
    if (!st && !b->is_read)
        st = heft_error_input(&err, fetch(&s->new, s->new_buffer, p->new, p->new_part, s, &err),
                              HEFT_INPUT_SECOND);
    if (st) {
        heft_progress_fail(p->progress, st, &err);
        return;
    }
    s->changed = 0;
    hash(s->old_digest, s->old, s->length);
    if (p->is_dense)
        s->changed = memcmp(s->old, s->new, s->length) != 0;
    else
        scan_piece(p, s);
    if (s->changed)
        hash(s->new_digest, s->new, s->length);
    else
        memcpy(s->new_digest, s->old_digest, HEFT_HASH_BYTES);
    heft_progress_add(p->progress, 2 * (uint64_t)s->length);
}

/* ---- batches of pieces, in order ---- */

/* A list takes two bytes and the value for each unit: beyond a quarter of the tensor, exclusive ors
 * take about as little, and no memory. */
static bool is_too_dense(const heft_delta_pair *p)
{
    uint64_t values = p->changed * p->unit;
    return values + 2 * p->changed > p->length / 4 + 64 || values > UINT32_MAX / 2;
}

static heft_status keep_piece(heft_delta_pair *p, const heft_delta_slot *s, heft_memory *mem,
                              heft_error *err)
{
    size_t block = (size_t)HEFT_DELTA_BLOCK * p->unit;
    uint32_t blocks = (uint32_t)((s->length + block - 1) / block);
    heft_blake3_update(&p->old_digest, s->old_digest, HEFT_HASH_BYTES);
    heft_blake3_update(&p->new_digest, s->new_digest, HEFT_HASH_BYTES);
    p->changed += s->changed;
    p->is_dense = p->is_dense || is_too_dense(p);
    if (p->is_dense)
        return HEFT_OK;
    heft_blake3_update(&p->replaced, s->found.old, (size_t)s->changed * p->unit);
    bool has_memory = heft_vec_add_many(mem, &p->counts, s->counts, blocks, sizeof *s->counts) &&
                      heft_vec_add_many(mem, &p->gaps, s->found.gaps, s->changed,
                                        sizeof *s->found.gaps) &&
                      heft_vec_add_many(mem, &p->values, s->found.new, s->changed * p->unit, 1);
    return has_memory ? HEFT_OK : heft_error_no_memory(err, purpose);
}

/* Read the bytes of a batch in order, where threads cannot read pieces of their own. */
static heft_status read_slots(heft_delta_slots *s, uint32_t n, heft_stream *old, heft_stream *new,
                              heft_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        heft_delta_slot *slot = &s->slots[i];
        const void *a, *b;
        heft_status st = heft_stream_view(&a, old, slot->old_buffer, slot->length, err);
        HEFT_TRY(heft_error_input(err, st, HEFT_INPUT_FIRST));
        st = heft_stream_view(&b, new, slot->new_buffer, slot->length, err);
        HEFT_TRY(heft_error_input(err, st, HEFT_INPUT_SECOND));
        slot->old = a;
        slot->new = b;
    }
    return HEFT_OK;
}

static heft_status run_batches(heft_delta_pair *p, heft_delta_slots *s, heft_stream *old,
                               heft_stream *new, heft_error *err)
{
    batch b = { p, s->slots, old != NULL };
    for (uint64_t at = 0; at < p->length;) {
        uint32_t n = 0;
        for (; n < s->count && at < p->length; n++) {
            uint64_t left = p->length - at;
            s->slots[n].from = at;
            s->slots[n].length = left < PIECE ? (size_t)left : PIECE;
            at += s->slots[n].length;
        }
        if (old)
            HEFT_TRY(read_slots(s, n, old, new, err));
        heft_executor_run(n > 1 ? p->new->host->executor : NULL, n, compare_piece, &b);
        if (heft_progress_halted(p->progress))
            return heft_progress_end(p->progress, err);
        for (uint32_t i = 0; i < n; i++)
            HEFT_TRY(keep_piece(p, &s->slots[i], s->mem, err));
    }
    return HEFT_OK;
}

/* Return true if threads may read ranges of the part: it is raw, and has no digest to compare. */
static bool is_random(const heft_file *f, uint32_t part)
{
    return heft_ix_is_plain(heft_ix_part_row_at(&f->x, part)) &&
           !(f->check_parts && heft_part_checksum(f, part, false) != HEFT_NONE);
}

heft_status heft_delta_pair_compare(heft_delta_pair *p, heft_delta_slots *s, heft_error *err)
{
    heft_stream *old = NULL, *new = NULL;
    heft_status st = HEFT_OK;
    p->length = heft_ix_part_row_at(&p->new->x, p->new_part)->length;
    heft_blake3_init(&p->old_digest);
    heft_blake3_init(&p->new_digest);
    heft_blake3_init(&p->replaced);
    if (!is_random(p->old, p->old_part) || !is_random(p->new, p->new_part))
        st = heft_delta_open_both(&old, &new, p, err);
    if (!st)
        st = run_batches(p, s, old, new, err);
    heft_stream_close(old);
    heft_stream_close(new);
    return st;
}

void heft_delta_pair_free(heft_delta_pair *p, heft_memory *mem)
{
    heft_vec_free(mem, &p->counts, sizeof(uint32_t));
    heft_vec_free(mem, &p->gaps, sizeof(uint16_t));
    heft_vec_free(mem, &p->values, 1);
}
