/* partial_crcs.c - a list of segments with CRC states. */
#include "core/read/partial_crcs.h"

#include "base/bisect.h"
#include "base/sort.h"

void heft_partial_crcs_init(heft_partial_crcs *s, const heft_host *h)
{
    *s = (heft_partial_crcs){ .al = h->allocator };
}

void heft_partial_crcs_free(heft_partial_crcs *s)
{
    heft_free(s->al, s->segments.ptr, s->segments.cap * sizeof(heft_crc_segment), 16);
    s->segments = (heft_vec){ NULL, 0, 0 };
}

uint32_t heft_partial_crcs_index(const heft_partial_crcs *s, const char *algorithm)
{
    uint32_t i = 0;
    while (i < s->digest_count && !heft_str_is(heft_lit(s->digests[i]->name), algorithm))
        i++;
    return i;
}

bool heft_partial_crcs_track(heft_partial_crcs *s, const heft_host *h, const char *algorithm)
{
    const heft_digest *d = heft_host_digest(h, algorithm);
    if (heft_partial_crcs_tracks(s, algorithm))
        return true;
    if (!d || !heft_partial_crcs_supports(d) || s->digest_count == HEFT_PARTIAL_CRC_KINDS)
        return false;
    s->digests[s->digest_count++] = d;
    return true;
}

/* Return false if the list is full; *cap is the capacity. */
static bool append(heft_partial_crcs *s, const heft_crc_segment *added, uint32_t *cap)
{
    heft_spin_lock(&s->lock);
    bool fits = s->segments.len < s->segments.cap;
    if (fits)
        ((heft_crc_segment *)s->segments.ptr)[s->segments.len++] = *added;
    *cap = s->segments.cap;
    heft_spin_unlock(&s->lock);
    return fits;
}

/* Allocate without the lock, because the allocator is the caller's.  Several workers may allocate;
 * the first to return provides the list. */
static bool grow(heft_partial_crcs *s, uint32_t cap)
{
    enum { FIRST = 64, MAX = 1 << 27 }; /* upper bound: the size in bytes fits any size_t */
    uint32_t new_cap = cap ? 2 * cap : FIRST;
    heft_crc_segment *list = new_cap <= MAX ? heft_alloc(s->al, new_cap * sizeof *list, 16) : NULL;
    heft_vec unused = { list, 0, new_cap };
    if (!list)
        return false;
    heft_spin_lock(&s->lock);
    if (s->segments.cap == cap) {
        unused = s->segments;
        s->segments = (heft_vec){ list, unused.len, new_cap };
        if (unused.len)
            memcpy(list, unused.ptr, unused.len * sizeof *list);
    }
    heft_spin_unlock(&s->lock);
    heft_free(s->al, unused.ptr, unused.cap * sizeof *list, 16);
    return true;
}

heft_status heft_partial_crcs_put(heft_partial_crcs *s, const heft_crc_segment *added,
                                  heft_error *err)
{
    uint32_t cap;
    while (!append(s, added, &cap))
        if (!grow(s, cap))
            return heft_error_no_memory(err, "for checksums");
    return HEFT_OK;
}

heft_crc_segment heft_crc_segment_begin(const heft_partial_crcs *s, uint64_t offset)
{
    heft_crc_segment segment = { offset, 0, { 0 } };
    for (uint32_t i = 0; i < s->digest_count; i++)
        s->digests[i]->init(&segment.state[i]);
    return segment;
}

void heft_crc_segment_update(heft_crc_segment *segment, const heft_partial_crcs *s,
                             const void *data, size_t len)
{
    for (uint32_t i = 0; i < s->digest_count; i++)
        s->digests[i]->update(&segment->state[i], data, len);
    segment->len += len;
}

heft_status heft_partial_crcs_add(heft_partial_crcs *s, uint64_t offset, const void *data,
                                  size_t len, heft_error *err)
{
    if (!s->digest_count || !len)
        return HEFT_OK;
    heft_crc_segment added = heft_crc_segment_begin(s, offset);
    heft_crc_segment_update(&added, s, data, len);
    return heft_partial_crcs_put(s, &added, err);
}

/* Restore the heap below element `at`.  Heap sort needs no memory; offsets are unique, so stability
 * does not matter. */
static void sift(heft_crc_segment *list, uint32_t at, uint32_t n)
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && list[child].offset < list[child + 1].offset;
        if (list[at].offset >= list[child].offset)
            return;
        heft_crc_segment swap = list[at];
        list[at] = list[child];
        list[child] = swap;
    }
}

void heft_partial_crcs_sort(heft_partial_crcs *s)
{
    heft_crc_segment *list = s->segments.ptr;
    uint32_t n = s->segments.len, sorted = 1;
    while (sorted < n && list[sorted - 1].offset <= list[sorted].offset)
        sorted++;
    if (sorted >= n)
        return;
    for (uint32_t i = n / 2; i--;)
        sift(list, i, n);
    while (n > 1) {
        heft_crc_segment top = list[0];
        list[0] = list[--n];
        list[n] = top;
        sift(list, 0, n);
    }
}

/* ---- few segments ---- */

void heft_borders_init(heft_borders *b, const heft_host *h)
{
    *b = (heft_borders){ .mem = { h->allocator, UINT64_MAX, 0 } };
}

bool heft_borders_add(heft_borders *b, heft_range r)
{
    heft_border begin = { r.offset, 1 }, end = { r.offset + r.length, -1 };
    return !r.length || (heft_vec_add(&b->mem, &b->at, &begin, sizeof begin) &&
                         heft_vec_add(&b->mem, &b->at, &end, sizeof end));
}

static bool is_lower(const void *ctx, uint32_t i, uint32_t k)
{
    const heft_border *all = ctx;
    return all[i].at < all[k].at;
}

bool heft_borders_sort(heft_borders *b)
{
    uint32_t n = b->at.len;
    const heft_border *all = b->at.ptr;
    size_t bytes = n * 2 * sizeof(uint32_t);
    uint32_t *ids = n ? heft_mem_alloc(&b->mem, bytes) : NULL;
    heft_vec sorted = { NULL, 0, 0 };
    bool has_memory = !n || (ids && heft_vec_reserve(&b->mem, &sorted, n, sizeof *all));
    if (has_memory && n) {
        heft_sort_numbers(ids, n, is_lower, all);
        for (uint32_t i = 0; i < n; i++)
            ((heft_border *)sorted.ptr)[sorted.len++] = all[ids[i]];
        heft_vec_free(&b->mem, &b->at, sizeof *all);
        b->at = sorted;
    }
    heft_mem_free(&b->mem, ids, bytes);
    return has_memory;
}

void heft_borders_free(heft_borders *b)
{
    heft_vec_free(&b->mem, &b->at, sizeof(heft_border));
}

/* Return true if `at` is a border. */
static bool is_border(const heft_borders *b, uint64_t at)
{
    const heft_border *all = b->at.ptr;
    heft_bisect find = { .end = b->at.len };
    while (heft_bisect_next(&find))
        heft_bisect_narrow(&find, all[find.mid].at < at);
    return find.first < b->at.len && all[find.first].at == at;
}

void heft_partial_crcs_compact(heft_partial_crcs *s, const heft_borders *b)
{
    heft_crc_segment *list = s->segments.ptr, *last = NULL;
    uint32_t kept = 0;
    heft_partial_crcs_sort(s);
    for (uint32_t i = 0; i < s->segments.len; i++) {
        const heft_crc_segment *next = &list[i];
        if (last && next->offset < last->offset + last->len)
            continue;
        if (!last || next->offset != last->offset + last->len || is_border(b, next->offset)) {
            last = &list[kept++];
            *last = *next;
            continue;
        }
        for (uint32_t k = 0; k < s->digest_count; k++)
            s->digests[k]->combine(&last->state[k], &next->state[k], next->len);
        last->len += next->len;
    }
    s->segments.len = kept;
}

heft_status heft_partial_crcs_join(const heft_partial_crcs *s, const char *algorithm, heft_range r,
                                   void *state,
                                   heft_status (*missing)(void *ctx, const heft_digest *d,
                                                          heft_range r, void *state,
                                                          heft_error *err),
                                   void *ctx, heft_error *err)
{
    const heft_crc_segment *list = s->segments.ptr;
    uint32_t a = heft_partial_crcs_index(s, algorithm);
    uint64_t at = r.offset, end = r.offset + r.length;
    heft_status st = HEFT_OK;
    heft_bisect b = { .end = s->segments.len };
    while (heft_bisect_next(&b))
        heft_bisect_narrow(&b, list[b.mid].offset < at);
    for (uint32_t i = b.first; at < end && !st;) {
        while (i < s->segments.len && (list[i].offset < at || list[i].offset + list[i].len > end))
            i++;
        uint64_t next = i < s->segments.len && list[i].offset < end ? list[i].offset : end;
        if (next == at) {
            s->digests[a]->combine(state, &list[i].state[a], list[i].len);
            at += list[i++].len;
            continue;
        }
        heft_range gap = { at, next - at };
        st = missing ? missing(ctx, s->digests[a], gap, state, err)
                     : heft_error_set(err, HEFT_E_ARGUMENT, at,
                                      "a checksum covers bytes that were not written");
        at = next;
    }
    return st;
}
