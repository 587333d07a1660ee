/* partial_crcs.c - a list of segments with CRC states. */
#include "core/read/partial_crcs.h"

#include "base/bisect.h"
#include "base/sort.h"

typedef struct segment {
    uint64_t offset, len;
    uint32_t state[HEFT_PARTIAL_CRC_KINDS];
} segment;

void heft_partial_crcs_init(heft_partial_crcs *s, const heft_host *h)
{
    *s = (heft_partial_crcs){ .al = h->allocator };
}

void heft_partial_crcs_free(heft_partial_crcs *s)
{
    heft_free(s->al, s->segments.ptr, s->segments.cap * sizeof(segment), 16);
    s->segments = (heft_vec){ NULL, 0, 0 };
}

static uint32_t digest_index(const heft_partial_crcs *s, const char *algorithm)
{
    uint32_t i = 0;
    while (i < s->digest_count && !heft_str_is(heft_lit(s->digests[i]->name), algorithm))
        i++;
    return i;
}

bool heft_partial_crcs_track(heft_partial_crcs *s, const heft_host *h, const char *algorithm)
{
    const heft_digest *d = heft_host_digest(h, algorithm);
    if (digest_index(s, algorithm) < s->digest_count)
        return true;
    if (!d || !heft_partial_crcs_supports(d) || s->digest_count == HEFT_PARTIAL_CRC_KINDS)
        return false;
    s->digests[s->digest_count++] = d;
    return true;
}

/* Return false if the list is full; *cap is the capacity. */
static bool append(heft_partial_crcs *s, const segment *added, uint32_t *cap)
{
    heft_spin_lock(&s->lock);
    bool fits = s->segments.len < s->segments.cap;
    if (fits)
        ((segment *)s->segments.ptr)[s->segments.len++] = *added;
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
    segment *list = new_cap <= MAX ? heft_alloc(s->al, new_cap * sizeof *list, 16) : NULL;
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

static heft_status add_segment(heft_partial_crcs *s, const segment *added, heft_error *err)
{
    uint32_t cap;
    while (!append(s, added, &cap))
        if (!grow(s, cap))
            return heft_error_no_memory(err, "for checksums");
    return HEFT_OK;
}

heft_status heft_partial_crcs_add(heft_partial_crcs *s, uint64_t offset, const void *data,
                                  size_t len, heft_error *err)
{
    segment added = { offset, len, { 0 } };
    if (!s->digest_count || !len)
        return HEFT_OK;
    for (uint32_t i = 0; i < s->digest_count; i++) {
        s->digests[i]->init(&added.state[i]);
        s->digests[i]->update(&added.state[i], data, len);
    }
    return add_segment(s, &added, err);
}

/* Restore the heap below element `at`.  Heap sort needs no memory; offsets are unique, so stability
 * does not matter. */
static void sift(segment *list, uint32_t at, uint32_t n)
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && list[child].offset < list[child + 1].offset;
        if (list[at].offset >= list[child].offset)
            return;
        segment swap = list[at];
        list[at] = list[child];
        list[child] = swap;
    }
}

void heft_partial_crcs_sort(heft_partial_crcs *s)
{
    segment *list = s->segments.ptr;
    uint32_t n = s->segments.len, sorted = 1;
    while (sorted < n && list[sorted - 1].offset <= list[sorted].offset)
        sorted++;
    if (sorted >= n)
        return;
    for (uint32_t i = n / 2; i--;)
        sift(list, i, n);
    while (n > 1) {
        segment top = list[0];
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
    uint64_t end = r.offset + r.length;
    return heft_vec_add(&b->mem, &b->at, &r.offset, sizeof end) &&
           heft_vec_add(&b->mem, &b->at, &end, sizeof end);
}

static bool is_lower(const void *ctx, uint32_t i, uint32_t k)
{
    const uint64_t *at = ctx;
    return at[i] < at[k];
}

bool heft_borders_sort(heft_borders *b)
{
    uint32_t n = b->at.len;
    const uint64_t *at = b->at.ptr;
    size_t bytes = n * sizeof(uint64_t);
    uint32_t *ids = n ? heft_mem_alloc(&b->mem, bytes) : NULL;
    heft_vec sorted = { NULL, 0, 0 };
    bool has_memory = !n || (ids && heft_vec_reserve(&b->mem, &sorted, n, sizeof *at));
    if (has_memory && n) {
        heft_sort_numbers(ids, n, is_lower, at);
        for (uint32_t i = 0; i < n; i++)
            ((uint64_t *)sorted.ptr)[sorted.len++] = at[ids[i]];
        heft_vec_free(&b->mem, &b->at, sizeof *at);
        b->at = sorted;
    }
    heft_mem_free(&b->mem, ids, bytes);
    return has_memory;
}

void heft_borders_free(heft_borders *b)
{
    heft_vec_free(&b->mem, &b->at, sizeof(uint64_t));
}

/* Return true if `at` is a border. */
static bool is_border(const heft_borders *b, uint64_t at)
{
    const uint64_t *all = b->at.ptr;
    heft_bisect find = { .end = b->at.len };
    while (heft_bisect_next(&find))
        heft_bisect_narrow(&find, all[find.mid] < at);
    return find.first < b->at.len && all[find.first] == at;
}

void heft_partial_crcs_compact(heft_partial_crcs *s, const heft_borders *b)
{
    segment *list = s->segments.ptr, *last = NULL;
    uint32_t kept = 0;
    heft_partial_crcs_sort(s);
    for (uint32_t i = 0; i < s->segments.len; i++) {
        const segment *next = &list[i];
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

const uint32_t *heft_partial_crcs_at(const heft_partial_crcs *s, uint32_t i, heft_range *r)
{
    const segment *at = (const segment *)s->segments.ptr + i;
    *r = (heft_range){ at->offset, at->len };
    return at->state;
}

heft_status heft_partial_crcs_put(heft_partial_crcs *s, heft_range r, const uint32_t *states,
                                  heft_error *err)
{
    segment added = { r.offset, r.length, { 0 } };
    memcpy(added.state, states, s->digest_count * sizeof *states);
    return add_segment(s, &added, err);
}

heft_status heft_partial_crcs_join(const heft_partial_crcs *s, const char *algorithm, heft_range r,
                                   void *state,
                                   heft_status (*missing)(void *ctx, const heft_digest *d,
                                                          heft_range r, void *state,
                                                          heft_error *err),
                                   void *ctx, heft_error *err)
{
    const segment *list = s->segments.ptr;
    uint32_t a = digest_index(s, algorithm);
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
