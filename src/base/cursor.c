/* cursor.c - out-of-line functions of the cursor: opening, missing bytes, errors, and text. */
#include "base/cursor.h"

#include "base/checked_math.h"
#include "base/error.h"
#include "base/text.h"

static const uint8_t empty[1];

/* Fail: every later read returns zero, and the offset no longer changes. */
static void fail(heft_cur *c, heft_status st)
{
    c->st = st;
    c->end = c->p;
}

heft_cur heft_cur_open(heft_window *in, uint64_t off, uint64_t len, const char *what)
{
    uint64_t left = off < in->size ? in->size - off : 0, have = 0;
    if (len > left)
        len = left;
    const uint8_t *p = len ? in->window(in, off, len, &have) : empty;
    if (!have)
        p = empty;
    if (have > len)
        have = len;
    return (heft_cur){
        .p = p, .end = p + have, .start = p, .base = off, .limit = off + len, .in = in, .what = what
    };
}

static const uint8_t *bytes_window(heft_window *in, uint64_t off, uint64_t want, uint64_t *have)
{
    uint64_t left = off < in->size ? in->size - off : 0;
    *have = want < left ? want : left;
    return ((const heft_window_bytes *)in)->bytes + (off < in->size ? off : in->size);
}

static void ignore_need(heft_window *in, uint64_t off, uint64_t len)
{
    (void)in;
    (void)off;
    (void)len;
}

heft_window_bytes heft_window_of(const void *bytes, uint64_t size, heft_error *err)
{
    heft_window in = { .size = size, .window = bytes_window, .need = ignore_need, .err = err };
    return (heft_window_bytes){ in, bytes };
}

heft_status heft_window_decode(heft_window *in, heft_encoding e, heft_range stored, void *out,
                               size_t *len)
{
    if (in->decode)
        return in->decode(in, e, stored, out, len);
    return heft_error_set(in->err, HEFT_E_UNSUPPORTED, stored.offset,
                          "compressed data starts here, but no decoder is available");
}

heft_cur heft_cur_whole(heft_window *in, uint64_t off, uint64_t len, const char *what)
{
    heft_cur c = heft_cur_open(in, off, len, what);
    if (len > (uint64_t)(c.end - c.p))
        heft_cur_underrun(&c, len);
    return c;
}

void heft_cur_underrun(heft_cur *c, uint64_t n)
{
    if (c->st)
        return;
    uint64_t pos = heft_cur_pos(c), left = c->limit - pos;
    if (n > left) {
        heft_error_set(c->in->err, HEFT_E_FORMAT, pos, "%s: %U bytes are needed, %U are left",
                       c->what, n, left);
        fail(c, HEFT_E_FORMAT);
        return;
    }
    c->in->need(c->in, pos, n);
    fail(c, HEFT_AGAIN);
}

void heft_cur_skip(heft_cur *c, uint64_t n)
{
    uint64_t pos = heft_cur_pos(c);
    if (c->st)
        return;
    if (n > c->limit - pos)
        heft_cur_underrun(c, n);
    else if (n <= (uint64_t)(c->end - c->p))
        c->p += n;
    else
        *c = heft_cur_open(c->in, pos + n, c->limit - pos - n, c->what);
}

void heft_window_ask_ahead(heft_window *in, uint64_t at, uint64_t records)
{
    enum { STEP = 64 << 10, RECORDS_PER_STEP = 512 };
    uint64_t steps = 1 + heft_div(records, RECORDS_PER_STEP), bytes;
    if (heft_mul(&bytes, steps, STEP) && at < in->size)
        in->need(in, at, bytes < in->size - at ? bytes : in->size - at);
}

static heft_status fail_with(heft_cur *c, uint64_t at, const char *fmt, va_list *ap)
{
    if (c->st)
        return c->st;
    heft_error_set_list(c->in->err, HEFT_E_FORMAT, at, fmt, ap);
    fail(c, HEFT_E_FORMAT);
    return c->st;
}

heft_status heft_cur_fail(heft_cur *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_status st = fail_with(c, heft_cur_pos(c), fmt, &ap);
    va_end(ap);
    return st;
}

heft_status heft_cur_fail_at(heft_cur *c, uint64_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    heft_status st = fail_with(c, at, fmt, &ap);
    va_end(ap);
    return st;
}

heft_str heft_cur_text_at(heft_cur *c, const uint8_t *p, uint64_t n, const char *what)
{
    if (!p)
        return (heft_str){ "", 0 };
    uint64_t pos = heft_cur_pos(c) - n;
    size_t len = (size_t)n, valid = heft_utf8_valid(p, len);
    if (heft_unlikely(valid < len)) {
        heft_error_set(c->in->err, HEFT_E_FORMAT, pos + valid, "%s is not UTF-8: byte 0x%X", what,
                       (uint64_t)p[valid]);
        fail(c, HEFT_E_FORMAT);
        return (heft_str){ "", 0 };
    }
    return (heft_str){ (const char *)p, len };
}
