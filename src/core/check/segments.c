/* segments.c - a list of pieces with the states of their checksums. */
#include "core/check/segments.h"

#include "base/sort.h"

typedef struct segment {
    uint64_t off, len;
    uint32_t state[HEFT_SEGMENT_DIGESTS];
} segment;

void heft_segments_init(heft_segments *s, const heft_host *h)
{
    *s = (heft_segments){ .mem = { h->allocator, UINT64_MAX, 0 } };
}

void heft_segments_free(heft_segments *s)
{
    heft_vec_free(&s->mem, &s->list, sizeof(segment));
}

static uint32_t number(const heft_segments *s, const char *algorithm)
{
    uint32_t i = 0;
    while (i < s->digest_count && !heft_str_is(heft_lit(s->digests[i]->name), algorithm))
        i++;
    return i;
}

bool heft_segments_want(heft_segments *s, const heft_host *h, const char *algorithm)
{
    const heft_digest *d = heft_host_digest(h, algorithm);
    if (number(s, algorithm) < s->digest_count)
        return true;
    if (!d || !d->join || d->state_bytes != sizeof(uint32_t) ||
        s->digest_count == HEFT_SEGMENT_DIGESTS)
        return false;
    s->digests[s->digest_count++] = d;
    return true;
}

heft_status heft_segments_add(heft_segments *s, uint64_t off, const void *data, size_t len,
                              heft_error *err)
{
    segment piece = { off, len, { 0 } };
    if (!s->digest_count || !len)
        return HEFT_OK;
    for (uint32_t i = 0; i < s->digest_count; i++) {
        s->digests[i]->init(&piece.state[i]);
        s->digests[i]->update(&piece.state[i], data, len);
    }
    while (__atomic_exchange_n(&s->busy, 1, __ATOMIC_ACQUIRE))
        ;
    segment *to = heft_vec_push(&s->mem, &s->list, sizeof *to);
    if (to)
        *to = piece;
    __atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
    return to ? HEFT_OK : heft_error_plain(err, HEFT_E_NOMEM, "no memory for checksums");
}

/* In place, by a heap: the order of equal offsets does not matter, there are none. */
static void sift(segment *list, uint32_t at, uint32_t n)
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && list[child].off < list[child + 1].off;
        if (list[at].off >= list[child].off)
            return;
        segment swap = list[at];
        list[at] = list[child];
        list[child] = swap;
    }
}

void heft_segments_sort(heft_segments *s)
{
    segment *list = s->list.ptr;
    uint32_t n = s->list.len, sorted = 1;
    while (sorted < n && list[sorted - 1].off <= list[sorted].off)
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

static uint32_t first_from(const heft_segments *s, uint64_t off)
{
    const segment *list = s->list.ptr;
    uint32_t lo = 0, hi = s->list.len;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (list[mid].off < off)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

heft_status heft_segments_join(const heft_segments *s, const char *algorithm, heft_range r,
                               void *state,
                               heft_status (*missing)(void *ctx, const heft_digest *d, heft_range r,
                                                      void *state, heft_error *err),
                               void *ctx, heft_error *err)
{
    const segment *list = s->list.ptr;
    uint32_t a = number(s, algorithm);
    uint64_t at = r.offset, end = r.offset + r.length;
    heft_status st = HEFT_OK;
    for (uint32_t i = first_from(s, at); at < end && !st;) {
        while (i < s->list.len && (list[i].off < at || list[i].off + list[i].len > end))
            i++;
        uint64_t next = i < s->list.len && list[i].off < end ? list[i].off : end;
        if (next == at) {
            s->digests[a]->join(state, &list[i].state[a], list[i].len);
            at += list[i++].len;
            continue;
        }
        heft_range gap = { at, next - at };
        st = missing
                 ? missing(ctx, s->digests[a], gap, state, err)
                 : heft_error_set(err, HEFT_E_ARGUMENT, at, "bytes were written past a checksum");
        at = next;
    }
    return st;
}
