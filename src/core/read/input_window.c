/* input_window.c - keeps the segments of a file that have arrived so far. */
#include "core/read/input_window.h"

#include "base/bisect.h"
#include "base/checked_math.h"
#include "base/error.h"

enum { MIN_REQUEST = 64 << 10 };

typedef struct segment {
    uint64_t off;
    uint8_t *data;
    size_t len, cap;
} segment;

static segment *segments(const heft_input *b)
{
    return b->segments.ptr;
}

/* Return the number of segments that begin at or before off. */
static uint32_t segments_up_to(const heft_input *b, uint64_t off)
{
    heft_bisect s = { .end = b->segments.len };
    while (heft_bisect_next(&s))
        heft_bisect_narrow(&s, segments(b)[s.mid].off <= off);
    return s.first;
}

/* Return the segment that contains off or ends at off, or NULL. */
static segment *segment_at(const heft_input *b, uint64_t off)
{
    uint32_t n = segments_up_to(b, off);
    if (!n)
        return NULL;
    segment *s = &segments(b)[n - 1];
    return off - s->off <= s->len ? s : NULL;
}

static const uint8_t *window(heft_window *in, uint64_t off, uint64_t want, uint64_t *have)
{
    static const uint8_t nothing[1] = { 0 };
    const heft_input *b = (const heft_input *)in;
    *have = 0;
    if (off > in->size)
        return nothing;
    if (want > in->size - off)
        want = in->size - off;
    if (b->whole_file) {
        *have = want;
        return b->whole_file + off;
    }
    const segment *s = segment_at(b, off);
    if (!s)
        return nothing;
    uint64_t left = s->len - (off - s->off);
    *have = left < want ? left : want;
    return s->data + (off - s->off);
}

/* Request only missing bytes, and at least as many as the segment already has: an index of unknown
 * length then takes a logarithmic number of rounds. */
static void need(heft_window *in, uint64_t off, uint64_t len)
{
    heft_input *b = (heft_input *)in;
    const segment *s = segment_at(b, off);
    uint64_t end = off + len, min_len = b->least;
    if (s) {
        off = s->off + s->len;
        min_len = s->len > min_len ? s->len : min_len;
    }
    if (end < off || end - off < min_len)
        end = off + min_len;
    uint32_t next = segments_up_to(b, off);
    uint64_t limit_end = next < b->segments.len ? segments(b)[next].off : in->size;
    end = end < limit_end ? end : limit_end;
    if (end <= off)
        return;
    const heft_range *last = b->needs.len ? (const heft_range *)b->needs.ptr + b->needs.len - 1
                                          : NULL;
    if (last && off >= last->offset && off - last->offset < last->length)
        off = last->offset + last->length; /* already requested */
    if (end <= off)
        return;
    if (end - off > b->limit - b->held) {
        b->over_limit = true;
        return;
    }
    heft_range *r = heft_vec_push(b->mem, &b->needs, sizeof *r);
    if (r)
        *r = (heft_range){ off, end - off };
    else
        b->no_memory = true;
}

void heft_input_init(heft_input *b, heft_memory *mem, uint64_t file_size, uint64_t limit)
{
    *b = (heft_input){
        .in = { .size = file_size, .window = window, .need = need },
        .mem = mem,
        .limit = limit,
        .least = MIN_REQUEST,
    };
}

void heft_input_free(heft_input *b)
{
    for (uint32_t i = 0; i < b->segments.len; i++)
        heft_mem_free(b->mem, segments(b)[i].data, segments(b)[i].cap);
    heft_vec_free(b->mem, &b->segments, sizeof(segment));
    heft_vec_free(b->mem, &b->needs, sizeof(heft_range));
}

void heft_input_clear(heft_input *b)
{
    b->needs.len = 0;
    b->over_limit = b->no_memory = false;
}

bool heft_input_missing(const heft_input *b, heft_range *rest, heft_range *missing)
{
    uint64_t at = rest->offset, end = at + rest->length;
    const segment *s = segment_at(b, at);
    at = s ? s->off + s->len : at;
    uint32_t next = segments_up_to(b, at);
    uint64_t stop = next < b->segments.len ? segments(b)[next].off : end;
    stop = stop < end ? stop : end;
    bool is_missing = at < stop;
    *missing = (heft_range){ at, is_missing ? stop - at : 0 };
    *rest = (heft_range){ stop, is_missing ? end - stop : 0 };
    return is_missing;
}

static bool grow(heft_input *b, segment *s, size_t len)
{
    if (len > SIZE_MAX - s->len)
        return false;
    size_t cap = s->len + len, more = s->cap + s->cap / 2;
    if (cap <= s->cap)
        return true;
    /* Grow geometrically, so that many small segments are not copied again and again. */
    cap = cap < more ? more : cap;
    uint8_t *p = heft_mem_resize(b->mem, s->data, s->cap, cap);
    if (!p)
        return false;
    s->data = p;
    s->cap = cap;
    return true;
}

/* Grow the list before the bytes: an arena allocator extends only the last block in place. */
heft_status heft_input_reserve(heft_input *b, uint64_t off, size_t len, uint8_t **to,
                               heft_error *err)
{
    uint32_t at = segments_up_to(b, off);
    bool append = at && segments(b)[at - 1].off + segments(b)[at - 1].len == off;
    segment fresh = { .off = off }, *s = append ? &segments(b)[at - 1] : &fresh;
    if ((!append && !heft_vec_reserve(b->mem, &b->segments, 1, sizeof *s)) || !grow(b, s, len))
        return heft_error_plain(err, HEFT_E_NOMEM, "no memory for %U bytes of the file",
                                (uint64_t)len);
    if (!append) { /* space in the list is reserved */
        s = &segments(b)[at];
        memmove(s + 1, s, (b->segments.len++ - at) * sizeof *s);
        *s = fresh;
    }
    *to = s->data + s->len;
    s->len += len;
    b->held += len;
    return HEFT_OK;
}

heft_status heft_input_join(heft_input *b, uint64_t off, heft_error *err)
{
    uint32_t n = segments_up_to(b, off);
    segment *s = &segments(b)[n - 1], *next = s + 1;
    if (n == b->segments.len || s->off + s->len != next->off)
        return HEFT_OK;
    if (!grow(b, s, next->len))
        return heft_error_no_memory(err, "to merge segments of the file");
    memcpy(s->data + s->len, next->data, next->len);
    s->len += next->len;
    heft_mem_free(b->mem, next->data, next->cap);
    memmove(next, next + 1, (b->segments.len - n - 1) * sizeof *next);
    b->segments.len--;
    return HEFT_OK;
}

heft_status heft_input_feed(heft_input *b, uint64_t off, const void *data, size_t len,
                            heft_error *err)
{
    const uint8_t *p = data;
    heft_status st = HEFT_OK;
    while (len && !st) {
        uint32_t n = segments_up_to(b, off);
        const segment *previous = n ? &segments(b)[n - 1] : NULL;
        uint64_t held = previous && off - previous->off < previous->len
                            ? previous->len - (off - previous->off)
                            : 0;
        uint64_t gap = n < b->segments.len ? segments(b)[n].off - off : len;
        size_t step = (size_t)(held ? held : gap) < len ? (size_t)(held ? held : gap) : len;
        uint8_t *to;
        if (!held)
            st = heft_input_reserve(b, off, step, &to, err);
        if (!st && !held)
            memcpy(to, p, step);
        if (!st)
            st = heft_input_join(b, off, err);
        p += step;
        off += step;
        len -= step;
    }
    return st;
}

uint64_t heft_input_offset_of(const heft_input *b, const void *p)
{
    uintptr_t at = (uintptr_t)p, whole = (uintptr_t)b->whole_file;
    if (b->whole_file)
        return at - whole < b->in.size ? at - whole : HEFT_NOWHERE;
    for (uint32_t i = 0; i < b->segments.len; i++) {
        const segment *s = &segments(b)[i];
        if (at - (uintptr_t)s->data < s->len)
            return s->off + (at - (uintptr_t)s->data);
    }
    return HEFT_NOWHERE;
}
